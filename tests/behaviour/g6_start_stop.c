/* SPDX-License-Identifier: MIT
 * G6: start, stop and the change of rate are idempotent, and come at any time from any thread. */
#include "behaviour.h"

enum { THREADS = 6, KEPT = 100 };
static const char *folder;

NOINLINE static void *seen(void) {
  void *volatile p = malloc(64);
  return p;
}
NOINLINE static void *unseen(void) {
  void *volatile p = malloc(64);
  return p;
}

static void *matrix(void *argument) {
  uint64_t state = (uint64_t)(intptr_t)argument + 99;
  void *kept[KEPT] = {0};
  for (long i = 0, n = scaled(20000, 400000); i < n; i++) {
    uint64_t r = random_next(&state);
    void **slot = &kept[r % KEPT];
    free(*slot);
    *slot = malloc(r >> 50);
    int result = 0;
    switch ((r >> 20) % 400) {
      case 0: result = heapprof_start(); break;
      case 1: result = heapprof_stop(); break;
      case 2: result = heapprof_set_sample_rate(1); break;
      case 3: result = heapprof_set_sample_rate(4096); break;
      case 4: result = heapprof_set_sample_rate(0); break;
      case 5: result = heapprof_reset(); break;
      case 6: result = i % 8 == 0 ? dump_to(folder, (intptr_t)argument % 2 ? "matrix-a" : "matrix-b") : 0; break;
      case 7: stats_now(); break;
      default: break;
    }
    CHECK(result == 0, "%d", result);
  }
  for (int i = 0; i < KEPT; i++) free(kept[i]);
  return NULL;
}

int main(int argc, char **argv) {
  (void)argc;
  folder = argv[1];
  void *a = seen();
  CHECK_EQUAL(heapprof_active(), 1);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(heapprof_stop(), 0);
    CHECK_EQUAL(heapprof_active(), 0);
  }
  void *b = unseen();
  free(a); /* taken while it ran, freed while it stands: out all the same */
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(heapprof_start(), 0);
    CHECK_EQUAL(stats_now().sample_rate_bytes, 1);
  }
  void *c = seen();
  CHECK_EQUAL(heapprof_set_sample_rate(0), 0);
  CHECK_EQUAL(heapprof_active(), 0);
  CHECK_EQUAL(heapprof_set_sample_rate(777), 0);
  CHECK_EQUAL(heapprof_stop(), 0);
  CHECK_EQUAL(heapprof_start(), 0);
  CHECK_EQUAL(stats_now().sample_rate_bytes, 777); /* where it was */
  CHECK_EQUAL(dump_to(folder, "matrix"), 0);
  free(b);
  free(c);
  CHECK_EQUAL(heapprof_stop(), 0);
  CHECK_EQUAL(dump_to(folder, "stopped"), 0);
  pthread_t threads[THREADS];
  run_threads(threads, THREADS, matrix);
  join_threads(threads, THREADS);
  CHECK_EQUAL(heapprof_stop(), 0);
  struct heapprof_stats s = stats_now();
  CHECK(s.live_samples < 60, "%lu records of blocks that are gone", (unsigned long)s.live_samples);
  CHECK_EQUAL(s.missed_frees, 0);
  return 0;
}
