/* SPDX-License-Identifier: MIT
 * C4: a record found under a new block's address is a missed free: closed, counted, the sums as if it had been freed. */
#include "behaviour.h"

NOINLINE static void report_here(const void *p, size_t n) {
  heapprof_report_alloc(p, n);
  __asm__ volatile("");
}
NOINLINE static void report_there(const void *p, size_t n) {
  heapprof_report_alloc(p, n);
  __asm__ volatile("");
}

int main(int argc, char **argv) {
  (void)argc;
  static char place[64];
  struct heapprof_stats base = stats_now();
  report_here(place, 1000);
  report_here(place, 300); /* the same stack: the old record must not take the new one's figures along */
  struct heapprof_stats s = stats_now();
  CHECK_EQUAL(s.missed_frees, 1);
  CHECK_EQUAL(s.live_samples - base.live_samples, 1);
  CHECK_EQUAL(s.inuse_bytes_estimate - base.inuse_bytes_estimate, 300);
  report_there(place, 70); /* another stack */
  s = stats_now();
  CHECK_EQUAL(s.missed_frees, 2);
  CHECK_EQUAL(s.live_samples - base.live_samples, 1);
  CHECK_EQUAL(s.inuse_bytes_estimate - base.inuse_bytes_estimate, 70);
  CHECK_EQUAL(s.alloc_bytes_estimate - base.alloc_bytes_estimate, 1370);
  CHECK_EQUAL(dump_to(argv[1], "two"), 0);
  heapprof_report_free(place);
  s = stats_now();
  CHECK_EQUAL(s.live_samples, base.live_samples);
  CHECK_EQUAL(s.inuse_bytes_estimate, base.inuse_bytes_estimate);
  heapprof_report_free(place); /* unknown by now: nothing changes */
  CHECK_EQUAL(stats_now().inuse_bytes_estimate, base.inuse_bytes_estimate);
  return 0;
}
