/* SPDX-License-Identifier: MIT
 * B5: allocations made on the way of the profiler itself are not sampled, bias nothing, and are counted. */
#include "behaviour.h"

int main(void) {
  enum { BLOCKS = 1000 };
  static void *blocks[BLOCKS];
  struct heapprof_stats before = stats_now();
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_MALLOCS);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(30);
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_REAL);
  struct heapprof_stats after = stats_now();
  CHECK_EQUAL(heapprof_test_unwinder_mallocs(), BLOCKS); /* one a sample: no recursion */
  CHECK_EQUAL(after.reentrant - before.reentrant, BLOCKS);
  CHECK_EQUAL(after.samples - before.samples, BLOCKS);
  CHECK_EQUAL(after.alloc_bytes_estimate - before.alloc_bytes_estimate, 30 * BLOCKS);
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  CHECK_EQUAL(stats_now().live_samples, before.live_samples);
  return 0;
}
