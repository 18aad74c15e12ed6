/* SPDX-License-Identifier: MIT
 * fork_among_threads.c - claim: a child forked while other threads are in the middle of samples is whole: what they held is free
 * in it. With `names` they are noting names of threads (HEAPPROF_LABELS=thread), with `deep` they are in the buffers for stacks
 * deeper than 128 frames, of which there are fewer than threads (HEAPPROF_MAX_DEPTH=400). */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <heapprof.h>

enum { THREADS = 8, FORKS = 200, DEPTH = 200, CHILD_SECONDS = 300 };

/* Returns behind a frame of its own: no tail call. */
__attribute__((noinline)) static void *allocate_below(int depth) {
  void *volatile block = depth == 0 ? malloc(64) : allocate_below(depth - 1);
  return block;
}

static void *allocate_deep(void *unused) {
  (void)unused;
  for (;;) free(allocate_below(DEPTH));
  return NULL;
}

static void *allocate_by_many_names(void *number) {
  char name[16];
  for (unsigned i = 0;; i++) {
    snprintf(name, sizeof name, "%u.%u", (unsigned)(size_t)number, i);
    prctl(PR_SET_NAME, name);
    free(malloc(64));
  }
  return NULL;
}

static unsigned long long truncated(void) {
  struct heapprof_stats stats;
  memset(&stats, 0, sizeof stats);
  return heapprof_stats(&stats) == 0 ? stats.stacks_truncated : 0;
}

/* The child's exit status: 0 as it should be. */
static int be_child(bool is_deep) {
  alarm(CHILD_SECONDS);
  unsigned long long before = truncated();
  prctl(PR_SET_NAME, "child");
  if (allocate_below(is_deep ? DEPTH : 1) == NULL) return 3;
  return truncated() == before ? 0 : 4;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  bool is_deep = strcmp(argv[1], "deep") == 0;
  for (size_t i = 0; i < THREADS; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, is_deep ? allocate_deep : allocate_by_many_names, (void *)i) != 0) return 2;
  }
  for (int i = 0; i < FORKS; i++) {
    int status;
    pid_t child = fork();
    if (child == 0) _exit(be_child(is_deep));
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
    if (!WIFEXITED(status)) return 5;
    if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  }
  return 0;
}
