/* SPDX-License-Identifier: MIT
 * D12 and D11: every figure of heapprof_stats, and the raw number of samples beside the estimates, in a script of known
 * events. */
#include "behaviour.h"

NOINLINE static void *five(void) {
  void *volatile p = malloc(200);
  return p;
}
NOINLINE static int recurse(int n, void **out) {
  if (n == 0) {
    *out = malloc(5);
    return 1;
  }
  int r = recurse(n - 1, out);
  return r + n;
}

int main(int argc, char **argv) {
  (void)argc;
  static char place[16];
  void *kept[5], *deep;
  struct heapprof_stats a = stats_now();
  CHECK_EQUAL(a.struct_size, sizeof a);
  CHECK_EQUAL(a.sample_rate_bytes, 1);
  CHECK_EQUAL(a.dumps, 0);
  for (int i = 0; i < 5; i++) kept[i] = five();
  free(kept[0]);
  struct heapprof_stats b = stats_now();
  CHECK_EQUAL(b.samples - a.samples, 5);
  CHECK_EQUAL(b.live_samples - a.live_samples, 4);
  CHECK_EQUAL(b.stacks - a.stacks, 1);
  CHECK_EQUAL(b.alloc_objects_estimate - a.alloc_objects_estimate, 5);
  CHECK_EQUAL(b.alloc_bytes_estimate - a.alloc_bytes_estimate, 1000);
  CHECK_EQUAL(b.inuse_objects_estimate - a.inuse_objects_estimate, 4);
  CHECK_EQUAL(b.inuse_bytes_estimate - a.inuse_bytes_estimate, 800);
  CHECK(b.metadata_bytes > 0, "no memory at all?");
  CHECK_EQUAL(b.missed_frees, 0);
  heapprof_report_alloc(place, 1);
  heapprof_report_alloc(place, 1);
  CHECK_EQUAL(stats_now().missed_frees, 1);
  heapprof_report_free(place);
  recurse(3000, &deep);
  CHECK_EQUAL(stats_now().stacks_truncated, 1);
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_FAILS);
  void *volatile lost = malloc(7);
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_MALLOCS);
  void *volatile reentrant = malloc(7);
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_REAL);
  CHECK_EQUAL(stats_now().unwind_failed, 1);
  CHECK_EQUAL(stats_now().reentrant, 1);
  heapprof_test_limit_live(stats_now().live_samples);
  void *volatile unrecorded = malloc(9);
  heapprof_test_limit_live(0);
  CHECK_EQUAL(stats_now().lost_live_table_full, 1);
  heapprof_test_limit_stacks((uint32_t)stats_now().stacks);
  void *volatile unstacked = malloc(11);
  heapprof_test_limit_stacks(0);
  CHECK_EQUAL(stats_now().lost_stack_table_full, 1);
  CHECK_EQUAL(dump_to(argv[1], "one"), 0);
  struct heapprof_stats c = stats_now();
  CHECK_EQUAL(c.dumps, 1);
  CHECK(c.dump_nanos_min == c.dump_nanos_max && c.dump_nanos_max == c.dump_nanos_total && c.dump_nanos_min > 0,
        "times of one dump");
  CHECK_EQUAL(dump_to(argv[1], "nowhere/x"), -ENOENT);
  CHECK_EQUAL(dump_to(argv[1], "two"), 0);
  struct heapprof_stats d = stats_now();
  CHECK_EQUAL(d.dumps, 2);
  CHECK_EQUAL(d.dumps_failed, 1);
  CHECK(d.dump_nanos_min <= d.dump_nanos_max && d.dump_nanos_min + d.dump_nanos_max == d.dump_nanos_total,
        "times of two dumps");
  free(lost), free(reentrant), free(unrecorded), free(unstacked), free(deep);
  for (int i = 1; i < 5; i++) free(kept[i]);
  CHECK_EQUAL(stats_now().live_samples, a.live_samples);
  CHECK_EQUAL(stats_now().inuse_bytes_estimate, a.inuse_bytes_estimate);
  return 0;
}
