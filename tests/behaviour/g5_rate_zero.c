/* SPDX-License-Identifier: MIT
 * G5: at rate 0 the library only passes calls on: no sample, no thread, no file, no memory. Sampling can be switched on later. */
#include <dirent.h>

#include "behaviour.h"

static int threads_now(void) {
  DIR *d = opendir("/proc/self/task");
  int n = 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static int go; /* atomic */
static void *wait_here(void *argument) {
  while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE)) wait_ms(1);
  return argument;
}

int main(int argc, char **argv) {
  pthread_t thread;
  run_threads(&thread, 1, wait_here);
  for (int i = 0; i < 100000; i++) free(realloc(malloc(10), 1000));
  struct heapprof_stats s = stats_now();
  CHECK_EQUAL(heapprof_active(), 0);
  CHECK_EQUAL(threads_now(), 2);
  CHECK_EQUAL(s.samples, 0);
  CHECK_EQUAL(s.metadata_bytes, 0);
  CHECK_EQUAL(heapprof_test_takes(), 0);
  if (argc > 2) {
    CHECK_EQUAL(heapprof_set_sample_rate(1), 0);
    CHECK_EQUAL(heapprof_active(), 1);
    CHECK_EQUAL(threads_now(), 3); /* the helper, now that there may be something to dump */
    void *volatile p = malloc(999);
    CHECK(stats_now().samples > 0, "nothing sampled");
    CHECK_EQUAL(dump_to(argv[1], "on"), 0);
    free(p);
    CHECK_EQUAL(heapprof_stop(), 0);
  }
  __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
  join_threads(&thread, 1);
  return 0;
}
