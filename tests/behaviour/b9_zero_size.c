/* SPDX-License-Identifier: MIT
 * B9: blocks of no size are seen, as one byte each: a million of them at R = 1024. */
#include <math.h>

#include "behaviour.h"

int main(void) {
  enum { N = 1000000, RATE = 1024 };
  heapprof_test_seed(42);
  heapprof_set_sample_rate(RATE);
  struct heapprof_stats before = stats_now();
  for (int i = 0; i < N; i++) {
    void *volatile p = malloc(0);
    free(p);
  }
  struct heapprof_stats after = stats_now();
  double p = -expm1(-1.0 / RATE), objects = (double)(after.alloc_objects_estimate - before.alloc_objects_estimate);
  double sigma = sqrt(N * (1 - p) / p);
  CHECK(fabs(objects - N) < 5 * sigma, "%.0f objects of %d +- %.0f", objects, N, sigma);
  CHECK_EQUAL(after.alloc_bytes_estimate, before.alloc_bytes_estimate);
  CHECK_EQUAL(after.live_samples, before.live_samples);
  return 0;
}
