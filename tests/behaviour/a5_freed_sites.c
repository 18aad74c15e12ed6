/* SPDX-License-Identifier: MIT
 * A5: a site whose blocks are all freed keeps its alloc columns; and yet the stacks' memory is bounded: what does not fit goes
 * to [stack table full], and the totals stay exact. Under a small HEAPPROF_MAX_MEMORY. */
#include "behaviour.h"

NOINLINE static void *freed_site(void) {
  void *volatile p = malloc(40);
  return p;
}

NOINLINE static void *walk_left(unsigned path, int depth);
NOINLINE static void *walk_right(unsigned path, int depth);
static void *step(unsigned path, int depth) {
  if (depth == 0) return malloc(16);
  return (path & 1) != 0 ? walk_left(path >> 1, depth - 1) : walk_right(path >> 1, depth - 1);
}
static void *walk_left(unsigned path, int depth) {
  void *volatile p = step(path, depth);
  return p;
}
static void *walk_right(unsigned path, int depth) {
  void *volatile p = step(path, depth);
  return p;
}

int main(int argc, char **argv) {
  (void)argc;
  int bits = (int)scaled(17, 20); /* a million distinct stacks */
  for (int i = 0; i < 10; i++) free(freed_site());
  uint64_t largest = 0;
  for (unsigned path = 0; path < 1u << bits; path++) {
    free(walk_left(path, bits));
    if (path % 1024 == 0 && stats_now().metadata_bytes > largest) largest = stats_now().metadata_bytes;
  }
  struct heapprof_stats s = stats_now();
  CHECK(largest <= 4u << 20, "%lu bytes under a ceiling of 4 MiB", (unsigned long)largest);
  CHECK(s.lost_stack_table_full > 0 && s.lost_stack_table_full < 1u << bits, "%lu lost",
        (unsigned long)s.lost_stack_table_full);
  CHECK_EQUAL(s.lost_live_table_full, 0);
  CHECK_EQUAL(dump_to(argv[1], "bounded"), 0);
  return 0;
}
