/* SPDX-License-Identifier: MIT
 * main_leaves_early.c - claim: if the main thread leaves while the library's thread is being made, by another thread of the program's,
 * that thread does not stay: the process ends with the program's last. (surroundings.c holds it back.) */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int heapprof_start(void) __attribute__((weak));
extern int surroundings_is_waiting __attribute__((weak)), surroundings_go_on __attribute__((weak));

static pid_t last_thread;

static void at_end(void) {
  if (gettid() != last_thread) _exit(7);
}

static void *work(void *unused) {
  if (heapprof_start() != 0) _exit(2); /* the first need of that thread */
  for (int i = 1; i < 300; i++) free(memset(malloc((size_t)i), 1, (size_t)i));
  raise(SIGUSR2);
  last_thread = gettid();
  return unused;
}

int main(void) {
  pthread_t thread;
  if (heapprof_start == NULL || &surroundings_is_waiting == NULL) return 3;
  atexit(at_end);
  if (pthread_create(&thread, NULL, work, NULL) != 0) return 4;
  while (__atomic_load_n(&surroundings_is_waiting, __ATOMIC_ACQUIRE) == 0) usleep(1000);
  __atomic_store_n(&surroundings_go_on, 1, __ATOMIC_RELEASE);
  pthread_exit(NULL);
}
