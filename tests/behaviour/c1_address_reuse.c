/* SPDX-License-Identifier: MIT
 * C1: the record is out before the real free. The allocator hands an address out again at once, so a record that stayed a
 * moment longer would meet its successor: as a missed free, or by taking the successor's record along. */
#include "behaviour.h"

static long pairs;

/* Threads hand each other blocks of one size through a few slots, so that addresses wander between them. */
static void *slots[16];

static void *storm(void *argument) {
  uint64_t state = (uint64_t)(intptr_t)argument + 1;
  for (long i = 0; i < pairs; i++) {
    void *fresh = malloc(48);
    free(__atomic_exchange_n(&slots[random_next(&state) % 16], fresh, __ATOMIC_ACQ_REL));
  }
  return NULL;
}

int main(void) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  pairs = scaled(300000, 2500000);
  run_threads(threads, 2, storm); /* what threads leave behind for good is there before the first look */
  join_threads(threads, 2);
  for (int i = 0; i < 16; i++) {
    free(slots[i]);
    slots[i] = NULL;
  }
  struct heapprof_stats before = stats_now();
  run_threads(threads, THREADS, storm);
  join_threads(threads, THREADS);
  for (int i = 0; i < 16; i++) free(slots[i]);
  struct heapprof_stats after = stats_now();
  CHECK(after.samples - before.samples >= (uint64_t)pairs * THREADS, "%lu samples", (unsigned long)after.samples);
  CHECK(after.live_samples <= before.live_samples + THREADS, "%lu live",
        (unsigned long)(after.live_samples - before.live_samples));
  CHECK_EQUAL(after.missed_frees, 0);

  /* And looked at directly, at each real free. */
  heapprof_test_check_order(true);
  for (int i = 0; i < 20000; i++) free(malloc(48));
  free(realloc(malloc(10), 100000));
  heapprof_test_check_order(false);
  CHECK(heapprof_test_order_checks() >= 20000, "%lu checks", (unsigned long)heapprof_test_order_checks());
  CHECK_EQUAL(heapprof_test_late_records(), 0);
  return 0;
}
