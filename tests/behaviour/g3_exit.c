/* SPDX-License-Identifier: MIT
 * G3: the last dump comes in bounded time; frees after it do no harm; however a process ends, it leaves no half file.
 *   FOLDER exit | return | threads | late | in-fork | _exit | abort | kill | kill-in-dump */
#include "behaviour.h"

static void *early[100];

/* A handler that comes when our fork handler has taken all locks: one of the program's, registered before it, raises the signal. */
static const char *volatile leaves_in_fork;
static void leave(int number) {
  (void)number;
  exit(9);
}
static void before_fork(void) {
  if (leaves_in_fork != NULL) raise(SIGUSR1);
}
static void register_early(void) { pthread_atfork(before_fork, NULL, NULL); }
__attribute__((section(".preinit_array"), used)) static void (*const registering)(void) = register_early;

static void *run_on(void *argument) { /* detached, still at it when the process ends */
  (void)argument;
  while (true) free(malloc(100));
  return NULL;
}

__attribute__((destructor(101))) static void very_late(void) {
  for (int i = 0; i < 100; i++) free(early[i]);
  for (int i = 0; i < 1000; i++) free(malloc(100));
}

static void at_exit(void) { free(malloc(77)); }

NOINLINE static void *last_words(void) {
  void *volatile p = malloc(4321);
  return p;
}

int main(int argc, char **argv) {
  const char *how = argc > 2 ? argv[2] : "return";
  for (int i = 0; i < 100; i++) early[i] = malloc(10);
  atexit(at_exit);
  last_words();
  if (strcmp(how, "exit") == 0) exit(0);
  if (strcmp(how, "threads") == 0) {
    pthread_t threads[3];
    run_threads(threads, 3, run_on);
    for (int i = 0; i < 3; i++) pthread_detach(threads[i]);
    wait_ms(20);
    exit(7);
  }
  if (strcmp(how, "in-fork") == 0) {
    leaves_in_fork = how;
    signal(SIGUSR1, leave);
    fork();
  }
  if (strcmp(how, "_exit") == 0) _exit(3);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "kill-in-dump") == 0) {
    heapprof_test_pause_dump(slow_dump);
    struct dump_call call = {argv[1], "half", -1};
    pthread_t dumper;
    pthread_create(&dumper, NULL, dump_in_thread, &call);
    wait_for_paused_dump();
    raise(SIGKILL);
  }
  return 0;
}
