/* SPDX-License-Identifier: MIT
 * plugin.c - a library that allocates, built twice under two names (PLUGIN_SITE). */
#include <stdlib.h>

void *plugin_allocate(size_t n);

__attribute__((noinline)) static void *PLUGIN_SITE(size_t n) {
  void *volatile p = malloc(n);
  return p;
}

void *plugin_allocate(size_t n) {
  void *volatile p = PLUGIN_SITE(n);
  return p;
}
