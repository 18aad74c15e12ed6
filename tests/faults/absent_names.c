/* SPDX-License-Identifier: MIT
 * absent_names.c - claim: an allocator or a C library without some of the names that the library has is to the program one that is out
 * of memory, or of threads: it gets the error of that, and what is there works. (surroundings.c hides the names.) */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* jemalloc's, answered by the library from malloc_usable_size. */
extern size_t sallocx(const void *, int) __attribute__((weak));

static void *nothing(void *unused) { return unused; }
static int no_number(void *unused) { return unused != NULL; }

int main(void) {
  void *block = &block;
  pthread_t thread;
  thrd_t other;
  if (posix_memalign(&block, 64, 100) != ENOMEM || block != &block) return 1;
  errno = 0;
  block = aligned_alloc(64, 128);
  if (block != NULL || errno != ENOMEM) return 2;
  block = memalign(64, 100);
  if (block != NULL) return 3;
  errno = 0;
  block = valloc(100);
  if (block != NULL || errno != ENOMEM) return 4;
  block = pvalloc(100);
  if (block != NULL) return 5;
  block = malloc(100);
  if (block == NULL || sallocx == NULL || sallocx(block, 0) != 0) return 6;
  memset(block, 1, 100);
  block = realloc(block, 1000);
  if (block == NULL || *(char *)block != 1) return 7;
  free(block);
  if (pthread_create(&thread, NULL, nothing, NULL) != EAGAIN) return 8;
  if (thrd_create(&other, no_number, NULL) != thrd_error) return 9;
  if (pthread_cancel(pthread_self()) != ESRCH) return 10;
  pthread_testcancel();
  return 0;
}
