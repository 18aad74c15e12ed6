/* SPDX-License-Identifier: MIT
 * setuid_with_threads.c - claim: a program with threads changes its ids as ever. The C library asks every thread of the
 * process to do so, with a signal of its own: a thread that blocks it hangs the process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *allocate(void *unused) {
  (void)unused;
  for (int i = 0; i < 2000; i++) free(malloc(100));
  return NULL;
}

int main(void) {
  for (int round = 0; round < 20; round++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate, NULL) != 0) return 1;
    if (setgid(getgid()) != 0 || setuid(getuid()) != 0) return 2;
    pthread_join(thread, NULL);
  }
  if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 3;
  puts("done");
  return 0;
}
