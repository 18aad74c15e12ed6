/* SPDX-License-Identifier: MIT
 * name_demangle.c - see name_demangle.h.
 *
 * Substitutions let a name of n bytes stand for 2^n, so the output is taken through libiberty's callbacks and left by longjmp
 * when it grows beyond reason. libiberty bounds its own recursion.
 */
#include "name_demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"

enum { MANGLED_BYTES_MAX = 16 * 1024, DEMANGLED_BYTES_MAX = 64 * 1024 };

struct output {
  jmp_buf too_long;
  size_t used;
  char text[DEMANGLED_BYTES_MAX + 1];
};

static void collect(const char *text, size_t length, void *context) {
  struct output *output = context;
  if (length > DEMANGLED_BYTES_MAX - output->used) longjmp(output->too_long, 1);
  if (length != 0) memcpy(output->text + output->used, text, length); /* libiberty passes a null pointer with length 0 */
  output->used += length;
}

/* Rust's legacy names are valid C++ names with a hash at the end, so Rust is asked first. */
static bool run_demanglers(const char *name, struct output *output) {
  const int options = DMGL_PARAMS | DMGL_ANSI;
  if (setjmp(output->too_long) != 0) return false;
  if (rust_demangle_callback(name, options, collect, output)) return true;
  output->used = 0;
  return strncmp(name, "_Z", 2) == 0 && cplus_demangle_v3_callback(name, options, collect, output);
}

/* Where the compiler's marks of a clone begin (foo.constprop.0, foo.part.1.cold): the clone is the function, for a reader. Behind a dot
 * there is none: Rust writes a path in a type so ("krate..part..Foo"). */
static size_t length_without_clone(const char *name) {
  static const char *const marks[] = {".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm."};
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    const char *mark = strstr(name, marks[i]);
    while (mark != NULL && mark > name && mark[-1] == '.') mark = strstr(mark + 1, marks[i]);
    if (mark != NULL && (size_t)(mark - name) < length) length = (size_t)(mark - name);
  }
  return length;
}

char *hp_demangle(const char *name) {
  static struct output output; /* too large for the stack */
  if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R')) return NULL;
  if (strlen(name) > MANGLED_BYTES_MAX) return NULL;
  output.used = 0;
  char *whole = hp_strdup(name);
  whole[length_without_clone(name)] = '\0';
  bool is_mangled = run_demanglers(whole, &output) && output.used != 0;
  free(whole);
  if (!is_mangled) return NULL;
  output.text[output.used] = '\0';
  return hp_strdup(output.text);
}
