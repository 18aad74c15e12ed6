/* SPDX-License-Identifier: MIT
 * B7: nothing is lost in silence. Live table full: the allocation counts, in use does not. Stack table full, or no stack: both
 * sides on a pseudo frame. */
#include "behaviour.h"

enum { BLOCKS = 100 };
static void *blocks[BLOCKS];

NOINLINE static void *limited_site(void) {
  void *volatile p = malloc(10);
  return p;
}
NOINLINE static void *new_site(void) {
  void *volatile p = malloc(20);
  return p;
}
NOINLINE static void *blind_site(void) {
  void *volatile p = malloc(30);
  return p;
}

int main(int argc, char **argv) {
  (void)argc;
  struct heapprof_stats before = stats_now();
  heapprof_test_limit_live(before.live_samples + 10);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = limited_site();
  struct heapprof_stats s = stats_now();
  CHECK_EQUAL(s.alloc_objects_estimate - before.alloc_objects_estimate, BLOCKS);
  CHECK_EQUAL(s.inuse_objects_estimate - before.inuse_objects_estimate, 10);
  CHECK_EQUAL(s.lost_live_table_full, BLOCKS - 10);
  CHECK_EQUAL(dump_to(argv[1], "live-full"), 0);
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  heapprof_test_limit_live(0);
  CHECK_EQUAL(stats_now().inuse_bytes_estimate, before.inuse_bytes_estimate);
  CHECK_EQUAL(stats_now().live_samples, before.live_samples);

  heapprof_test_limit_stacks((uint32_t)stats_now().stacks);
  void *a = new_site();
  heapprof_test_limit_stacks(0);
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_FAILS);
  void *b = blind_site();
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_REAL);
  CHECK_EQUAL(dump_to(argv[1], "pseudo"), 0);
  free(a);
  free(b);
  CHECK_EQUAL(dump_to(argv[1], "freed"), 0);
  CHECK_EQUAL(stats_now().inuse_bytes_estimate, before.inuse_bytes_estimate);
  return 0;
}
