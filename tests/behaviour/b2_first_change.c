/* SPDX-License-Identifier: MIT
 * B2: the first change of the rate while the program runs reaches every thread at its very next allocation, however much is left
 * of the gap that it drew before. */
#include "behaviour.h"

enum { THREADS = 8, BLOCKS = 50, SIZE = 64 };
static pthread_barrier_t barrier;

static void allocate(void) {
  for (int i = 0; i < BLOCKS; i++) {
    void *volatile p = malloc(SIZE);
    free(p);
    void *volatile q = calloc(1, SIZE);
    free(q);
  }
}

static void *body(void *argument) {
  allocate(); /* a gap is drawn */
  for (int phase = 0; phase < 3; phase++) {
    pthread_barrier_wait(&barrier); /* the rate is another now */
    allocate();
    pthread_barrier_wait(&barrier);
  }
  return argument;
}

static uint64_t samples_of_a_phase(void) {
  uint64_t before = stats_now().samples;
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return stats_now().samples - before;
}

int main(void) {
  static pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  run_threads(threads, THREADS, body);
  samples_of_a_phase(); /* all have their first gap behind them, of the rate that was set from outside */
  CHECK_EQUAL(heapprof_set_sample_rate(1), 0);
  CHECK_EQUAL(samples_of_a_phase(), THREADS * BLOCKS * 2);
  CHECK_EQUAL(heapprof_stop(), 0);
  CHECK_EQUAL(samples_of_a_phase(), 0);
  join_threads(threads, THREADS);
  return 0;
}
