/* SPDX-License-Identifier: MIT
 * raw_fork.c - claim: a child made without the C library's fork (clone, _Fork) has files of its own, and its parent's stay.
 */
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

static int profiles_of(pid_t pid) {
  char pattern[4200];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/*.%d.*.pb.gz", getenv("HEAPPROF_WORK"), (int)pid);
  int n = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
  globfree(&found);
  return n;
}

static void *idle(void *unused) { return unused; }

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "threads") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, idle, NULL) != 0) return 1;
    pthread_join(thread, NULL);
  }
  kept = malloc(1000);
  fflush(NULL);
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) {
    kept = malloc(2000);
    raise(SIGUSR2);
    kept = malloc(3000);
    exit(5);
  }
  int status;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5) return 2;
  if (profiles_of(getpid()) != 0) return 3;
  if (profiles_of(child) != 2) return 4;
  raise(SIGUSR2);
  while (profiles_of(getpid()) == 0) usleep(10000); /* under_heapprof.sh ends it */
  return profiles_of(getpid()) == 1 ? 0 : 5;
}
