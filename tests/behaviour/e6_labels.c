/* SPDX-License-Identifier: MIT
 * E6: labels split rows, their sums stay what the row without them was. All three labels, any combination. */
#include <sys/prctl.h>

#include "behaviour.h"

enum { THREADS = 3, EACH = 200 };
static void *blocks[THREADS][EACH];

NOINLINE static void *labelled_site(size_t n) {
  void *volatile p = malloc(n);
  return p;
}

static void *body(void *argument) {
  intptr_t t = (intptr_t)argument;
  char name[16];
  snprintf(name, sizeof name, "worker-%ld", (long)t);
  prctl(PR_SET_NAME, name);
  for (int i = 0; i < EACH; i++) blocks[t][i] = labelled_site((size_t)(10 + i % 4));
  for (int i = 0; i < EACH; i += 2) free(blocks[t][i]);
  return NULL;
}

int main(int argc, char **argv) {
  (void)argc;
  pthread_t threads[THREADS];
  heapprof_test_hold_clock();
  if (argc > 2) heapprof_test_seed(7), heapprof_set_sample_rate(33); /* weights that are no whole numbers */
  for (int t = 0; t < THREADS; t++) {
    CHECK_EQUAL(pthread_create(&threads[t], NULL, body, (void *)(intptr_t)t), 0);
    join_threads(&threads[t], 1);
    heapprof_test_advance_clock((int64_t)30 * 1000000000);
    if (t == 0) { /* as worker 0, after the fact */
      for (int i = 1; i < EACH; i += 2) free(blocks[t][i]), blocks[t][i] = NULL;
    }
  }
  run_threads(&threads[0], 1, body);
  join_threads(&threads[0], 1);
  CHECK_EQUAL(dump_to(argv[1], "labels"), 0);
  return 0;
}
