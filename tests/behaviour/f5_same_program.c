/* SPDX-License-Identifier: MIT
 * F5, F6: known blocks from functions of its own, static ones among them; run twice, the profiles unite. */
#include "behaviour.h"

static void *blocks[300];

NOINLINE static void *static_function(int i) {
  void *volatile p = malloc(1000 + (size_t)i % 2);
  return p;
}
NOINLINE void *global_function(int i);
void *global_function(int i) {
  void *volatile p = static_function(i);
  return p;
}

int main(int argc, char **argv) {
  (void)argc;
  for (int i = 0; i < 300; i++) blocks[i] = i % 3 == 0 ? static_function(i) : global_function(i);
  CHECK_EQUAL(dump_to(argv[1], "same"), 0);
  return 0;
}
