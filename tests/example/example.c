/* SPDX-License-Identifier: MIT
 * example.c - a program that controls its profiler through heapprof.h, from C. It runs with the library and without, and
 * prints what it found; run_example.sh checks both. It links nothing of heapprof.
 *
 *   example PROFILE     write the profile to this path */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heapprof.h"

enum { BLOCKS = 1000, BLOCK_BYTES = 100, POOL_BYTES = 5000 };

/* A custom allocator that gives out parts of one block: the profiler is told of each part. */
static char pool[POOL_BYTES];
static size_t pool_used;

static __attribute__((noinline)) void *pool_take(size_t size) {
  if (size > POOL_BYTES - pool_used) return NULL;
  void *part = pool + pool_used;
  pool_used += size;
  heapprof_report_alloc(part, size);
  return part;
}

static __attribute__((noinline)) char **fill(void) {
  char **blocks = calloc(BLOCKS, sizeof *blocks);
  if (blocks == NULL) exit(1);
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(BLOCK_BYTES);
    if (blocks[i] == NULL) exit(1);
    memset(blocks[i], 1, BLOCK_BYTES);
  }
  return blocks;
}

static void print_stats(const char *when) {
  struct heapprof_stats stats;
  int result = heapprof_stats(&stats);
  if (result == -ENOSYS) {
    printf("%s: not profiled\n", when);
  } else {
    printf("%s: result %d, rate %llu, in use at least %d blocks: %s\n", when, result,
           (unsigned long long)stats.sample_rate_bytes, BLOCKS, stats.inuse_objects_estimate >= BLOCKS ? "yes" : "no");
  }
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  printf("active %d\n", heapprof_active());
  printf("rate %d\n", heapprof_set_sample_rate(1)); /* from here on every allocation, exactly */
  char **blocks = fill();
  void *part = pool_take(1234);
  print_stats("filled");
  printf("dump %d\n", heapprof_dump(argv[1]));
  printf("reset %d\n", heapprof_reset());
  printf("report_free %d\n", heapprof_report_free(part));
  printf("stop %d\n", heapprof_stop());
  printf("active %d\n", heapprof_active());
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  free(blocks);
  print_stats("emptied");
  printf("start %d\n", heapprof_start());
  return 0;
}
