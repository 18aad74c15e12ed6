/* SPDX-License-Identifier: MIT
 * bench_profiler.c - dumps through whatever profiler is loaded, and the live set they are measured on.
 */
#include "bench_profiler.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_frames.h"
#include "bench_util.h"
#include "heapprof.h"

typedef int (*mallctl_function)(const char *, void *, size_t *, void *, size_t);
typedef void (*tcmalloc_dump_function)(const char *);

static uint64_t size_of_and_remove(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) return 0;
  unlink(path);
  return (uint64_t)status.st_size;
}

static uint64_t dump_tcmalloc(tcmalloc_dump_function dump) {
  static unsigned number;
  char path[512];
  const char *prefix = getenv("HEAPPROFILE");
  if (prefix == NULL) return 0;
  dump("bench");
  snprintf(path, sizeof path, "%s.%04u.heap", prefix, ++number);
  return size_of_and_remove(path);
}

uint64_t bench_profiler_dump(const char *path) {
  if (heapprof_active()) return heapprof_dump(path) == 0 ? size_of_and_remove(path) : 0;
  union {
    void *object;
    tcmalloc_dump_function dump;
    mallctl_function mallctl;
  } found;
  found.object = dlsym(RTLD_DEFAULT, "HeapProfilerDump");
  if (found.object != NULL) return dump_tcmalloc(found.dump);
  found.object = dlsym(RTLD_DEFAULT, "mallctl");
  if (found.object == NULL || found.mallctl("prof.dump", NULL, NULL, &path, sizeof path) != 0) return 0;
  return size_of_and_remove(path);
}

static uint64_t keep_at_leaf(struct bench_descent *descent) {
  void *block = malloc((size_t)descent->closure);
  if (block == NULL) bench_fail("malloc");
  bench_touch(block);
  *descent->blocks++ = block;
  return descent->path;
}

static uint64_t visit_at_leaf(struct bench_descent *descent) {
  void *block = malloc((size_t)descent->closure);
  if (block == NULL) bench_fail("malloc");
  bench_touch(block);
  free(block);
  return descent->path;
}

void bench_profiler_allocate(void **blocks, size_t count, size_t size, uint64_t stacks, unsigned depth) {
  struct bench_descent descent = {.leaf = keep_at_leaf, .closure = (void *)size, .blocks = blocks};
  for (size_t i = 0; i < count; i++) {
    descent.path = i % stacks;
    bench_descend(depth, &descent);
  }
}

void bench_profiler_visit_stacks(uint64_t stacks, unsigned depth) {
  struct bench_descent descent = {.leaf = visit_at_leaf, .closure = (void *)64};
  for (descent.path = 0; descent.path < stacks; descent.path++) bench_descend(depth, &descent);
}
