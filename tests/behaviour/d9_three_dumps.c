/* SPDX-License-Identifier: MIT
 * D9: of dumps in a row each stands for itself: no index of one file is meant in another. */
#include "behaviour.h"

NOINLINE static void *site_one(void) {
  void *volatile p = malloc(100);
  return p;
}
NOINLINE static void *site_two(void) {
  void *volatile p = malloc(200);
  return p;
}
NOINLINE static void *site_three(void) {
  void *volatile p = malloc(300);
  return p;
}

int main(int argc, char **argv) {
  (void)argc;
  void *one = site_one();
  CHECK_EQUAL(dump_to(argv[1], "first"), 0);
  void *two = site_two();
  free(one);
  CHECK_EQUAL(dump_to(argv[1], "second"), 0);
  void *three = site_three();
  CHECK_EQUAL(dump_to(argv[1], "third"), 0);
  free(two);
  free(three);
  return 0;
}
