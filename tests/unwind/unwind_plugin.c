/* SPDX-License-Identifier: MIT
 * unwind_plugin.c - a library that is loaded and unloaded; PLUGIN_BYTES sets the size of its frame. Two builds differ in
 * that only: the same places of code with different rules. */
#include <stddef.h>

long plugin_call(void (*function)(void));
long plugin_call(void (*function)(void)) {
  volatile char buffer[PLUGIN_BYTES];
  __asm__ volatile("" : : "r"(buffer) : "memory"); /* all of it: clang keeps only the bytes it sees used */
  buffer[0] = 1;
#ifdef PLUGIN_OTHER_CODE
  buffer[1] = 2;
  buffer[2] = 3;
#endif
  function();
  return buffer[0];
}

#ifdef PLUGIN_CONSTRUCTOR
extern void (*plugin_constructor_hook)(void);
__attribute__((constructor)) static void construct(void) {
  if (plugin_constructor_hook != NULL) plugin_constructor_hook();
}
#endif
