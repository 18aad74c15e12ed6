/* SPDX-License-Identifier: MIT
 * B1: the first gap of a thread is drawn too: 20 000 threads that allocate one block of 1 KiB each, at R = 16 KiB. */
#include <math.h>

#include "behaviour.h"

enum { AT_ONCE = 8, SIZE = 1024, RATE = 16384 };

static void *one_block(void *argument) {
  void *volatile p = malloc(SIZE);
  free(p);
  return argument;
}

int main(void) {
  long n = scaled(8000, 20000);
  pthread_t threads[AT_ONCE];
  heapprof_test_seed(20231);
  heapprof_set_sample_rate(0);
  run_threads(threads, AT_ONCE, one_block);
  join_threads(threads, AT_ONCE); /* the stacks of threads are kept for the next ones */
  heapprof_set_sample_rate(RATE);
  uint64_t before = stats_now().samples;
  pthread_attr_t small;
  pthread_attr_init(&small);
  for (long i = 0; i < n / AT_ONCE; i++) {
    run_threads(threads, AT_ONCE, one_block);
    join_threads(threads, AT_ONCE);
  }
  double p = -expm1(-(double)SIZE / RATE), samples = (double)(stats_now().samples - before);
  double expected = (double)n * p, sigma = sqrt((double)n * p * (1 - p));
  /* What the C library allocates for a thread (its dtv: some 300 bytes) is sampled as well. */
  double others = (double)n * 320 / RATE;
  CHECK(samples > expected - 5 * sigma && samples < expected + others + 5 * sigma + 5 * sqrt(others),
        "%.0f samples, expected %.0f +- %.0f", samples, expected, sigma);
  return 0;
}
