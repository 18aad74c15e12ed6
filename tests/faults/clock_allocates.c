/* SPDX-License-Identifier: MIT
 * clock_allocates.c - claim: a program whose clock_gettime is its own (simulated time, libfaketime), and allocates, is sampled in all of its
 * threads, though the library asks that clock for the seed of each thread's first gap, and after each sample whether a period is over. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, BLOCKS = 10000 };

static unsigned long asked;

int clock_gettime(clockid_t clock, struct timespec *out) {
  __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
  free(calloc(1, 32));
  return (int)syscall(SYS_clock_gettime, clock, out);
}

static void *allocate(void *unused) {
  for (int i = 0; i < BLOCKS; i++) free(malloc(100));
  return unused;
}

int main(void) {
  pthread_t threads[THREADS];
  allocate(NULL);
  for (int i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, allocate, NULL) != 0) return 1;
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  return __atomic_load_n(&asked, __ATOMIC_RELAXED) > THREADS ? 0 : 2; /* else nothing was tried */
}
