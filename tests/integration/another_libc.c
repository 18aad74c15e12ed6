/* SPDX-License-Identifier: MIT
 * another_libc.c - every call of the malloc family, threads, a fork and an exec, for another_libc.sh: no part of glibc's. Prints what
 * it got; status 5. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 };

static long aligned_blocks(void) {
  void *p = NULL;
  long got = posix_memalign(&p, 64, 100) == 0;
  free(p);
  p = aligned_alloc(64, 128);
  got += p != NULL;
  free(p);
  p = memalign(32, 10);
  got += malloc_usable_size(p) >= 10;
  free(p);
  return got;
}

static void *blocks(void *out) {
  long got = aligned_blocks();
  for (size_t i = 0; i < ROUNDS; i++) {
    char *p = malloc(i % 300 + 1), *q = calloc(3, i % 50 + 1);
    char *larger = realloc(p, i % 700 + 1);
    got += p != NULL && q != NULL && larger != NULL && q[0] == 0;
    free(larger);
    free(q);
  }
  *(long *)out = got;
  return out;
}

int main(void) {
  pthread_t threads[THREADS];
  long got[THREADS + 1] = {0};
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, blocks, &got[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    blocks(&got[THREADS]);
    if (got[THREADS] == got[0]) execl("/bin/sh", "sh", "-c", "ls / >/dev/null; exit 7", (char *)NULL);
    _exit(1);
  }
  waitpid(child, &status, 0);
  volatile size_t too_large = (size_t)-1 / 2;
  errno = 0;
  void *none = malloc(too_large);
  char *copy = strdup("copied");
  printf("%ld %ld %d %d %d %s\n", got[0], got[THREADS - 1], WEXITSTATUS(status), none == NULL, errno == ENOMEM, copy);
  free(none);
  free(copy);
  return 5;
}
