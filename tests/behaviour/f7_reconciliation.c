/* SPDX-License-Identifier: MIT
 * F7: much memory, touched, in live blocks: what the profile, the allocator and the system say of it agree. */
#include "behaviour.h"

int main(int argc, char **argv) {
  (void)argc;
  heapprof_test_hold_clock(); /* the allocator's figures are of no age */
  long blocks = scaled(256, 1024) * 16;
  enum { SIZE = 64 * 1024 };
  char **kept = calloc((size_t)blocks, sizeof *kept);
  for (long i = 0; i < blocks; i++) kept[i] = memset(malloc(SIZE), 1, SIZE);
  CHECK_EQUAL(dump_to(argv[1], "large"), 0);
  dprintf(1, "%ld\n", blocks * SIZE);
  for (long i = 0; i < blocks; i++) free(kept[i]);
  CHECK_EQUAL(dump_to(argv[1], "freed"), 0);
  CHECK_EQUAL(heapprof_reset(), 0);
  for (long i = 0; i < 100; i++) kept[i] = malloc(SIZE);
  CHECK_EQUAL(dump_to(argv[1], "reset"), 0);
  for (long i = 0; i < 100; i++) free(kept[i]);
  free(kept);
  return 0;
}
