/* SPDX-License-Identifier: MIT
 * C2: no free is queued, dropped or skipped: while a dump runs, at a table's limit, in the profiler's own section. */
#include "behaviour.h"

enum { BLOCKS = 1000, LIMIT = 50 };
static void *blocks[BLOCKS];

NOINLINE static void *keep_one(size_t size) {
  void *volatile p = malloc(size);
  return p;
}

static void free_all(void) {
  for (int i = 0; i < BLOCKS; i++) {
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

int main(int argc, char **argv) {
  (void)argc;
  for (int i = 0; i < BLOCKS; i++) blocks[i] = keep_one(100);
  heapprof_test_pause_dump(slow_dump);
  struct dump_call call = {argv[1], "during", -1};
  pthread_t dumper;
  pthread_create(&dumper, NULL, dump_in_thread, &call);
  wait_for_paused_dump();
  free_all();
  heapprof_test_pause_dump(NULL);
  let_dump_go();
  pthread_join(dumper, NULL);
  CHECK_EQUAL(call.result, 0);
  CHECK_EQUAL(dump_to(argv[1], "after"), 0);

  /* At the live table's limit the blocks that have records still lose them. */
  heapprof_test_limit_live(stats_now().live_samples + LIMIT);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = keep_one(100);
  CHECK_EQUAL(dump_to(argv[1], "limit"), 0);
  free_all();
  CHECK_EQUAL(dump_to(argv[1], "limit-after"), 0);
  CHECK_EQUAL(stats_now().missed_frees, 0);
  return 0;
}
