/* SPDX-License-Identifier: MIT
 * D4: in every row of every dump 0 <= in use <= allocated, and no bytes without objects, under load. The reader checks that of
 * each file. */
#include "behaviour.h"

enum { THREADS = 4, KEPT = 64 };
static int stop;            /* atomic */
static long steps[THREADS]; /* atomic */

NOINLINE static void *deep(int depth, size_t n) {
  void *volatile p = depth == 0 ? malloc(n) : deep(depth - 1, n);
  return p;
}

static void *churn(void *argument) {
  uint64_t state = (uint64_t)(intptr_t)argument * 77 + 5;
  void *kept[KEPT] = {0};
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    uint64_t r = random_next(&state);
    void **slot = &kept[r % KEPT];
    if (r >> 60 == 0) {
      *slot = realloc(*slot, 1 + (r >> 8) % 3000);
    } else {
      free(*slot);
      *slot = deep((int)((r >> 32) % 9), 1 + (r >> 40) % 2000);
    }
    __atomic_fetch_add(&steps[(intptr_t)argument], 1, __ATOMIC_RELAXED);
  }
  for (int i = 0; i < KEPT; i++) free(kept[i]);
  return NULL;
}

/* Between two dumps each thread has allocated, however few processors there are. */
static void wait_for_steps(void) {
  static long seen[THREADS];
  for (int t = 0; t < THREADS; t++) {
    while (__atomic_load_n(&steps[t], __ATOMIC_RELAXED) < seen[t] + KEPT) wait_ms(1);
    seen[t] = __atomic_load_n(&steps[t], __ATOMIC_RELAXED);
  }
}

int main(int argc, char **argv) {
  (void)argc;
  long dumps = scaled(150, 1000);
  pthread_t threads[THREADS];
  run_threads(threads, THREADS, churn);
  for (long i = 0; i < dumps; i++) {
    char name[32];
    snprintf(name, sizeof name, "load-%ld", i);
    if (i % 15 == 7) CHECK_EQUAL(heapprof_reset(), 0);
    if (i % 10 == 0) heapprof_set_sample_rate(i % 20 == 0 ? 1 : 700);
    wait_for_steps();
    CHECK_EQUAL(dump_to(argv[1], name), 0);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  join_threads(threads, THREADS);
  CHECK_EQUAL(stats_now().missed_frees, 0);
  return 0;
}
