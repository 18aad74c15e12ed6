/* SPDX-License-Identifier: MIT
 * E5: the peak is the moment at which most was in use, exactly at rate 1; also with threads, after a reset, in a child.
 * HEAPPROF_PEAK=1, HEAPPROF_GROWTH=1m. FOLDER [threads|mark] */
#include "behaviour.h"

enum { BLOCKS = 1000, SIZE = 10000, THREADS = 4 };
static void *blocks[BLOCKS];
static pthread_barrier_t barrier;

NOINLINE static void *rising_site(void) {
  void *volatile p = malloc(SIZE);
  return p;
}
NOINLINE static void *later_site(void) {
  void *volatile p = malloc(SIZE);
  return p;
}

static void *share(void *argument) {
  intptr_t t = (intptr_t)argument;
  for (int i = (int)t; i < BLOCKS; i += THREADS) {
    blocks[i] = rising_site();
    free(realloc(malloc(10), 30));
  }
  pthread_barrier_wait(&barrier); /* all of it is there */
  for (int i = (int)t; i < BLOCKS; i += THREADS) free(blocks[i]);
  for (int i = (int)t; i < BLOCKS; i += THREADS) free(later_site());
  return NULL;
}

/* Much is freed between the look that finds growth and the dump: growth is measured from what was seen there. */
static void measure_growth(void) {
  const uint64_t megabyte = 1 << 20;
  uint64_t dumps = stats_now().dumps;
  heapprof_test_inuse(100 * megabyte, 10 * megabyte);
  void *volatile first = malloc(10);
  CHECK_EQUAL(stats_now().dumps - dumps, 1);
  heapprof_test_inuse(50 * megabyte, 50 * megabyte);
  void *volatile second = malloc(10);
  CHECK_EQUAL(stats_now().dumps - dumps, 1); /* it stood higher */
  heapprof_test_inuse(101 * megabyte, 101 * megabyte);
  void *volatile third = malloc(10);
  CHECK_EQUAL(stats_now().dumps - dumps, 2);
  free(first);
  free(second);
  free(third);
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[2], "mark") == 0) {
    measure_growth();
    return 0;
  }
  if (argc > 2) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    run_threads(threads, THREADS, share);
    join_threads(threads, THREADS);
    CHECK_EQUAL(dump_to(argv[1], "threads"), 0);
    return 0;
  }
  uint64_t dumps = stats_now().dumps;
  for (int i = 0; i < BLOCKS; i++) blocks[i] = rising_site();
  CHECK_EQUAL(stats_now().dumps - dumps, 9); /* 10 MB and a little in steps of 1 MiB */
  for (int i = 10; i < BLOCKS; i++) free(blocks[i]);
  for (int i = 10; i < 50; i++) blocks[i] = later_site(); /* a lower hill */
  CHECK_EQUAL(dump_to(argv[1], "fallen"), 0);
  for (int i = 0; i < 50; i++) free(blocks[i]);
  CHECK_EQUAL(heapprof_reset(), 0);
  CHECK_EQUAL(dump_to(argv[1], "reset"), 0);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = rising_site();
  void *volatile top = later_site(); /* higher than ever */
  free(top);
  CHECK_EQUAL(dump_to(argv[1], "higher"), 0);
  for (int i = 10; i < BLOCKS; i++) free(blocks[i]);
  pid_t child = fork();
  if (child == 0) {
    for (int i = 10; i < 120; i++) blocks[i] = later_site();
    CHECK_EQUAL(stats_now().dumps, 1); /* 1.1 MB more than at the fork */
    for (int i = 0; i < 120; i++) free(blocks[i]);
    CHECK_EQUAL(dump_to(argv[1], "child"), 0);
    _exit(0);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(dump_to(argv[1], "parent"), 0);
  return 0;
}
