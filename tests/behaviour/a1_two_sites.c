/* SPDX-License-Identifier: MIT
 * A1: a record for each live block, one entry for each stack: two call sites a line apart are two stacks and two rows. */
#include "behaviour.h"

enum { EACH = 500 };
static void *blocks[2 * EACH];

NOINLINE static void allocate_both(int i) {
  void *volatile p = malloc(24);
  void *volatile q = malloc(24);
  blocks[2 * i] = p;
  blocks[2 * i + 1] = q;
}

int main(int argc, char **argv) {
  (void)argc;
  struct heapprof_stats before = stats_now();
  for (int i = 0; i < EACH; i++) allocate_both(i);
  struct heapprof_stats after = stats_now();
  CHECK_EQUAL(after.live_samples - before.live_samples, 2 * EACH);
  CHECK_EQUAL(after.stacks - before.stacks, 2);
  CHECK_EQUAL(dump_to(argv[1], "two"), 0);
  return 0;
}
