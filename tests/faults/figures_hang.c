/* SPDX-License-Identifier: MIT
 * figures_hang.c - claim: if the library's thread is stuck in the allocator that it asks for its figures (a thread that was interrupted
 * by exit() may hold that lock), the last dump is made all the same, by the thread that ends the process. (surroundings.c) */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *work(void *unused) {
  for (size_t i = 1; i < 300; i++) free(memset(malloc(i), 1, i));
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0) return 1;
  kill(getpid(), SIGUSR2); /* this dump hangs */
  usleep(100000);
  work(NULL);
  return 0;
}
