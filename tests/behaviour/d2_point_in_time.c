/* SPDX-License-Identifier: MIT
 * D2: a dump shows one moment while the program goes on: what is allocated meanwhile is in the next, what is freed meanwhile is
 * in this one and not in the next. Nobody waits for it. */
#include "behaviour.h"

enum { BEFORE = 77, DURING = 123, THREADS = 8 };
static void *before[BEFORE], *during[DURING];
static long pairs;

NOINLINE static void *old_site(void) {
  void *volatile p = malloc(10);
  return p;
}
NOINLINE static void *new_site(void) {
  void *volatile p = malloc(10);
  return p;
}

static void *churn(void *argument) {
  (void)argument;
  for (long i = 0; i < pairs; i++) free(malloc(24));
  return NULL;
}

int main(int argc, char **argv) {
  (void)argc;
  pairs = scaled(100000, 1000000);
  for (int i = 0; i < BEFORE; i++) before[i] = old_site();
  heapprof_test_pause_dump(slow_dump);
  struct dump_call call = {argv[1], "frozen", -1};
  pthread_t dumper, threads[THREADS];
  pthread_create(&dumper, NULL, dump_in_thread, &call);
  wait_for_paused_dump();
  for (int i = 0; i < DURING; i++) during[i] = new_site();
  for (int i = 0; i < BEFORE; i++) free(before[i]);
  run_threads(threads, THREADS, churn);
  join_threads(threads, THREADS); /* would never end if somebody waited for the dump */
  heapprof_test_pause_dump(NULL);
  let_dump_go();
  pthread_join(dumper, NULL);
  CHECK_EQUAL(call.result, 0);
  CHECK_EQUAL(dump_to(argv[1], "next"), 0);
  for (int i = 0; i < DURING; i++) free(during[i]);
  return 0;
}
