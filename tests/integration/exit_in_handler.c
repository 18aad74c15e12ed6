/* SPDX-License-Identifier: MIT
 * exit_in_handler.c - claim: a signal handler that calls exit() ends the process wherever it came, also inside the profiler.
 * 300 children, each ended so at a random moment of allocating. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int number) {
  (void)number;
  exit(5);
}

static void allocate_for_ever(void) {
  static void *kept[1024];
  for (unsigned i = 0;; i = (i + 1) % 1024) {
    free(kept[i]);
    kept[i] = malloc(1 + i * 7);
  }
}

int main(void) {
  for (int i = 0; i < 300; i++) {
    pid_t child = fork();
    if (child == 0) {
      struct itimerval soon = {.it_value = {0, 200 + i * 13 % 3000}};
      signal(SIGALRM, leave);
      setitimer(ITIMER_REAL, &soon, NULL);
      allocate_for_ever();
    }
    int status;
    if (waitpid(child, &status, 0) != child) return 1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5) return 2;
  }
  return 0;
}
