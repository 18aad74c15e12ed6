/* SPDX-License-Identifier: MIT
 * killed_in_a_dump.c - claim: processes killed at any moment of a dump leave nothing that is there for good: no half profile under
 * a final name, and after the next dump in the same directory no unfinished file (under_heapprof.sh looks at both). Where the
 * directory's file system cannot make a file without a name an unfinished one may stay: not tried there.
 *   killed_in_a_dump [threads]    with `threads` the helper dumps */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 250, BLOCKS = 3000, SKIPPED = 77 };

static void *volatile kept[BLOCKS];

static void *wait_for_ever(void *unused) {
  for (;;) pause();
  return unused;
}

static void dump_for_ever(int ready) {
  for (;;) {
    raise(SIGUSR2);
    if (ready >= 0 && write(ready, "", 1) != 1) _exit(4);
    close(ready);
    ready = -1;
  }
}

/* Ends the child so long after its first dump. */
static int kill_one(unsigned microseconds, int with_thread) {
  int ready[2];
  char byte;
  if (pipe(ready) != 0) return 1;
  pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    if (with_thread && pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) _exit(2);
    dump_for_ever(ready[1]);
  }
  close(ready[1]);
  int failed = child < 0 || read(ready[0], &byte, 1) != 1;
  close(ready[0]);
  usleep(microseconds);
  int status;
  kill(child, SIGKILL);
  if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return 1;
  return failed;
}

int main(int argc, char **argv) {
  const char *work = getenv("HEAPPROF_WORK");
  int unnamed = work == NULL ? -1 : open(work, O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0) return SKIPPED;
  close(unnamed);
  for (int i = 0; i < BLOCKS; i++) kept[i] = malloc(1 + (unsigned)i);
  for (unsigned i = 0; i < CHILDREN; i++) {
    if (kill_one(i * 37 % 5000, argc > 1 && strcmp(argv[1], "threads") == 0) != 0) return 2;
  }
  return 0; /* the last dump is this process's */
}
