/* SPDX-License-Identifier: MIT
 * B2: a change of rate draws new gaps and samples nobody because of it; each record keeps the weight it was given. */
#include <math.h>

#include "behaviour.h"

enum { THREADS = 100, ROUNDS = 100, BLOCKS = 10, SIZE = 64 };
static pthread_barrier_t barrier;

static void *body(void *argument) {
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&barrier); /* the rate has been changed */
    for (int i = 0; i < BLOCKS; i++) {
      void *volatile p = malloc(SIZE);
      free(p);
    }
    pthread_barrier_wait(&barrier);
  }
  return argument;
}

NOINLINE static void *old_block(void) {
  void *volatile p = malloc(1000);
  return p;
}

int main(void) {
  static pthread_t threads[THREADS];
  static void *old[5000];
  heapprof_test_seed(77);
  heapprof_set_sample_rate(4096);
  struct heapprof_stats empty = stats_now();
  for (int i = 0; i < 5000; i++) old[i] = old_block();
  struct heapprof_stats held = stats_now();
  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  run_threads(threads, THREADS, body);
  double expected = 0, variance = 0;
  uint64_t before = stats_now().samples;
  for (int round = 0; round < ROUNDS; round++) {
    double rate = round % 2 == 0 ? 16384 : 65536, p = -expm1(-SIZE / rate);
    heapprof_set_sample_rate((uint64_t)rate);
    expected += THREADS * BLOCKS * p;
    variance += THREADS * BLOCKS * p * (1 - p);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  join_threads(threads, THREADS);
  double samples = (double)(stats_now().samples - before);
  CHECK(fabs(samples - expected) < 5 * sqrt(variance) + 5, "%.0f samples, expected %.0f", samples, expected);
  struct heapprof_stats now = stats_now();
  int64_t drift = (int64_t)(now.inuse_bytes_estimate - held.inuse_bytes_estimate);
  CHECK(drift >= -300000 && drift <= 300000, "old blocks changed their weight: %ld bytes", (long)drift);
  heapprof_set_sample_rate(1 << 30);
  for (int i = 0; i < 5000; i++) free(old[i]);
  now = stats_now();
  CHECK(now.live_samples <= empty.live_samples + 5, "%lu records stay",
        (unsigned long)(now.live_samples - empty.live_samples));
  CHECK_EQUAL(now.missed_frees, 0);
  return 0;
}
