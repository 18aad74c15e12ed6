/* SPDX-License-Identifier: MIT
 * C5: addresses without a record cost nothing and change nothing, and any thread may free. */
#include "behaviour.h"

static void *kept[1000];

static void *allocate(void *argument) {
  (void)argument;
  for (int i = 0; i < 1000; i++) kept[i] = malloc(33);
  return NULL;
}
static void *release(void *argument) {
  (void)argument;
  for (int i = 0; i < 1000; i++) free(kept[i]);
  return NULL;
}

int main(void) {
  long pairs = scaled(10000000, 100000000);
  CHECK_EQUAL(heapprof_set_sample_rate((uint64_t)1 << 40), 0);
  uint64_t before = heapprof_test_takes(), samples = stats_now().samples;
  for (long i = 0; i < pairs; i++) {
    void *volatile p = malloc(33);
    free(p);
  }
  CHECK_EQUAL(stats_now().samples, samples);
  /* Rate 1 before main: what started up holds a few records, and their counters may be a wandering address's. */
  uint64_t looked = heapprof_test_takes() - before;
  CHECK(looked == 0, "%lu of %ld frees took a lock", (unsigned long)looked, pairs);

  CHECK_EQUAL(heapprof_set_sample_rate(1), 0);
  uint64_t live = stats_now().live_samples;
  pthread_t thread;
  pthread_create(&thread, NULL, allocate, NULL);
  pthread_join(thread, NULL);
  CHECK(stats_now().live_samples >= live + 1000, "the blocks of a thread that has gone");
  pthread_create(&thread, NULL, release, NULL);
  pthread_join(thread, NULL);
  CHECK(stats_now().live_samples <= live + 2, "freed by another thread: %lu left",
        (unsigned long)(stats_now().live_samples - live));
  CHECK_EQUAL(stats_now().missed_frees, 0);
  return 0;
}
