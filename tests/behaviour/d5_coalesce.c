/* SPDX-License-Identifier: MIT
 * D5: one dump at a time; requests that come meanwhile coalesce, and the last of them is never lost. With threads (a helper
 * dumps) and, argv[2] = "alone", without; "no-helper": with threads and without one, while heapprof_dump() dumps. */
#include "behaviour.h"

static void *idle(void *argument) {
  (void)argument;
  return NULL;
}

/* Two come for certain, however late; more would soon. */
static uint64_t dumps_after_quiet(void) {
  uint64_t last = 2;
  while (stats_now().dumps < 2) wait_ms(1);
  for (int quiet = 0; quiet < 20; quiet++) {
    uint64_t now = stats_now().dumps;
    if (now != last) quiet = 0;
    last = now;
    wait_ms(10);
  }
  return last;
}

static void alone(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  raise(SIGUSR2); /* nobody else: done when raise returns */
  CHECK_EQUAL(stats_now().dumps, 1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  for (int i = 0; i < 1000; i++) raise(SIGUSR2);
  CHECK_EQUAL(stats_now().dumps, 1);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  CHECK_EQUAL(stats_now().dumps, 2); /* a standard signal is pending once */
}

static void *call(void *folder) {
  CHECK_EQUAL(dump_to(folder, "call"), 0);
  return NULL;
}

static pthread_t main_thread;

/* The main thread has left, and the helper before it. */
static void *without_helper(void *folder) {
  pthread_t caller;
  pthread_join(main_thread, NULL);
  heapprof_test_pause_dump(slow_dump);
  pthread_create(&caller, NULL, call, folder);
  wait_for_paused_dump();
  raise(SIGUSR2);
  CHECK_EQUAL(stats_now().dumps, 0); /* not while another one is under way */
  heapprof_test_pause_dump(NULL);
  let_dump_go();
  pthread_join(caller, NULL);
  CHECK_EQUAL(stats_now().dumps, 2);
  exit(0);
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[2], "no-helper") == 0) {
    pthread_t thread;
    main_thread = pthread_self();
    pthread_create(&thread, NULL, without_helper, argv[1]);
    pthread_exit(NULL);
  }
  if (argc > 2 && strcmp(argv[2], "alone") == 0) {
    alone();
    return 0;
  }
  pthread_t thread;
  run_threads(&thread, 1, idle);
  join_threads(&thread, 1);
  heapprof_test_pause_dump(slow_dump);
  kill(getpid(), SIGUSR2);
  wait_for_paused_dump();
  for (int i = 0; i < 1000; i++) kill(getpid(), SIGUSR2);
  void *volatile late = malloc(12345); /* the last request comes after this */
  kill(getpid(), SIGUSR2);
  heapprof_test_pause_dump(NULL);
  let_dump_go();
  uint64_t dumps = dumps_after_quiet();
  CHECK(dumps <= 4, "%lu dumps for 1002 requests", (unsigned long)dumps);
  free(late);
  return 0;
}
