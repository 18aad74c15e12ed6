/* SPDX-License-Identifier: MIT
 * soak_plugin.c - what soak loads and unloads: code that allocates. */
#include <stdlib.h>

void *plugin_allocate(size_t n);

__attribute__((noinline)) static void *inner(size_t n) {
  void *volatile p = malloc(n);
  return p;
}

void *plugin_allocate(size_t n) {
  void *volatile p = inner(n);
  return p;
}
