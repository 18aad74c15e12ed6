/* SPDX-License-Identifier: MIT
 * main_is_cancelled.c - claim: when the main thread is cancelled and the last other thread returns, the process ends: no
 * thread of the profiler keeps it alive. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t main_thread;

static void *cancel_main(void *unused) {
  (void)unused;
  pthread_cancel(main_thread);
  for (int i = 0; i < 2000; i++) free(malloc(100));
  pthread_join(main_thread, NULL); /* this thread is the last */
  return NULL;
}

int main(void) {
  pthread_t thread;
  main_thread = pthread_self();
  if (pthread_create(&thread, NULL, cancel_main, NULL) != 0) return 1;
  for (;;) pause();
}
