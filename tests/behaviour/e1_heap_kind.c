/* SPDX-License-Identifier: MIT
 * E1, E2: one reading as full, heap and alloc: a row of each sort. HEAPPROF_KIND=full,heap,alloc,delta. */
#include "behaviour.h"

NOINLINE static void *gone_site(void) {
  void *volatile p = malloc(16);
  return p;
}
NOINLINE static void *kept_site(void) {
  void *volatile p = malloc(16);
  return p;
}

int main(int argc, char **argv) {
  (void)argc;
  static void *kept[5];
  for (int i = 0; i < 10; i++) free(gone_site());
  for (int i = 0; i < 5; i++) kept[i] = kept_site();
  CHECK_EQUAL(dump_to(argv[1], "one"), 0);
  free(gone_site());
  CHECK_EQUAL(dump_to(argv[1], "two"), 0);
  CHECK_EQUAL(dump_to(argv[1], "three"), 0);
  for (int i = 0; i < 5; i++) free(kept[i]);
  return 0;
}
