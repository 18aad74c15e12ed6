/* SPDX-License-Identifier: MIT
 * exit_during_dump.c - claim: a process with threads that ends while its helper dumps, or is about to, leaves no unfinished
 * file (under_heapprof.sh looks). 60 children, each asked for a dump and ended a moment later. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 60, BLOCKS = 3000 };

static void *volatile kept[BLOCKS];

static void *ask(void *unused) {
  for (;;) {
    kill(getpid(), SIGUSR2);
    usleep(100);
  }
  return unused;
}

int main(void) {
  for (int i = 0; i < BLOCKS; i++) kept[i] = malloc(1 + (unsigned)i);
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    pthread_t thread;
    if (child == 0) {
      if (pthread_create(&thread, NULL, ask, NULL) != 0) _exit(1);
      usleep(5000 + 700 * (unsigned)i % 20000);
      exit(5);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5) return 1;
  }
  return 0;
}
