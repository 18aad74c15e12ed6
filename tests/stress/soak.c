/* SPDX-License-Identifier: MIT
 * soak.c - a long quiet life: soak SECONDS FOLDER PLUGIN. Two threads allocate at random sizes from changing stacks, others come
 * and go, a library is loaded and unloaded, and each second there is a dump (by call and by signal in turn). soak.py reads the
 * files; here: no missed free, no loss, and the profiler's own memory does not grow once it has seen everything.
 * A library that comes back has the stacks it had, so loading leaves nothing behind. The memory's course is printed too. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "heapprof.h"

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

enum { WORKERS = 2, KEPT = 20000, SHORT_BLOCKS = 40, LOADS_EACH_SECOND = 4, SLACK_BYTES = 512 * 1024, POINTS = 12 };

static bool is_over; /* atomic */
static void *slots[64];

static uint64_t random_next(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static size_t random_size(uint64_t r) {
  unsigned bits = (unsigned)(r >> 40) % 100;
  size_t limit = bits < 70 ? 256 : bits < 95 ? 4096 : bits < 99 ? 65536 : 1 << 20;
  return r % limit;
}

NOINLINE static void *left(int depth, uint64_t path, size_t n);
NOINLINE static void *right(int depth, uint64_t path, size_t n);
static void *next(int depth, uint64_t path, size_t n) {
  if (depth == 0) return n % 16 == 3 ? calloc(1, n) : malloc(n);
  return (path & 1) != 0 ? left(depth - 1, path >> 1, n) : right(depth - 1, path >> 1, n);
}
static void *left(int depth, uint64_t path, size_t n) {
  void *volatile p = next(depth, path, n);
  return p;
}
static void *right(int depth, uint64_t path, size_t n) {
  void *volatile p = next(depth, path, n);
  return p;
}

static void *work(void *argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument * 1000 + 7;
  void **kept = calloc(KEPT, sizeof *kept);
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    for (int i = 0; i < 1000; i++) {
      uint64_t r = random_next(&state);
      void **slot = &kept[r % KEPT];
      size_t n = random_size(random_next(&state));
      if (r >> 61 == 0) {
        *slot = realloc(*slot, n + 1);
      } else if (r >> 61 == 1) {
        free(__atomic_exchange_n(&slots[r % 64], *slot, __ATOMIC_ACQ_REL)); /* to whoever comes */
        *slot = NULL;
      } else {
        free(*slot);
        *slot = next((int)((r >> 32) % 9), r >> 40, n);
      }
    }
    const struct timespec pause = {0, 500000};
    nanosleep(&pause, NULL); /* a busy server, not a furnace: an hour of this shares a machine */
  }
  for (int i = 0; i < KEPT; i++) free(kept[i]);
  free(kept);
  return NULL;
}

static void *live_shortly(void *argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument;
  void *mine[SHORT_BLOCKS];
  for (int i = 0; i < SHORT_BLOCKS; i++) mine[i] = next(3, random_next(&state), 64);
  for (int i = 0; i < SHORT_BLOCKS - 1; i++) free(mine[i]);
  free(__atomic_exchange_n(&slots[random_next(&state) % 64], mine[SHORT_BLOCKS - 1], __ATOMIC_ACQ_REL));
  return NULL;
}

static int use_plugin(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (library == NULL) {
    fprintf(stdout, "%s\n", dlerror());
    return -1;
  }
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
  void *blocks[16];
  for (int i = 0; i < 16; i++) blocks[i] = allocate(5000);
  for (int i = 0; i < 15; i++) free(blocks[i]);
  dlclose(library);
  free(__atomic_exchange_n(&slots[0], blocks[15], __ATOMIC_ACQ_REL)); /* outlives its code */
  return 0;
}

static struct heapprof_stats stats_now(void) {
  struct heapprof_stats s = {0};
  if (heapprof_stats(&s) != 0) {
    fprintf(stdout, "not under heapprof\n");
    exit(2);
  }
  return s;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  long seconds = atol(argv[1]), loads = 0, points = 0;
  setvbuf(stdout, NULL, _IONBF, 0);
  stats_now();
  pthread_t workers[WORKERS];
  for (uintptr_t i = 0; i < WORKERS; i++) pthread_create(&workers[i], NULL, work, (void *)(i + 1));
  uint64_t course[POINTS] = {0};
  for (long second = 0; second < seconds; second++) { /* a little more of each on a slow machine: as much is done */
    for (int part = 0; part < LOADS_EACH_SECOND; part++) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, live_shortly, (void *)(uintptr_t)(second * 10 + part)) == 0)
        pthread_join(thread, NULL);
      if (use_plugin(argv[3]) != 0) return 1;
      loads++;
      const struct timespec pause = {0, 900000000 / LOADS_EACH_SECOND};
      nanosleep(&pause, NULL);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/call.%06ld.pb.gz", argv[2], second);
    if (second % 2 == 1) {
      raise(SIGUSR2);
    } else if (heapprof_dump(path) != 0) {
      return 1;
    }
    if (points < POINTS && (second + 1) * POINTS >= seconds * points) course[points++] = stats_now().metadata_bytes;
  }
  struct heapprof_stats s = stats_now();
  __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
  for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
  for (int i = 0; i < 64; i++) free(slots[i]);
  struct heapprof_stats end = stats_now();
  uint64_t mark = course[POINTS / 4];
  fprintf(
      stdout,
      "dumps=%lu failed=%lu samples=%lu stacks=%lu missed_frees=%lu live_table_full=%lu stack_table_full=%lu reentrant=%lu "
      "unwind_failed=%lu metadata_at_quarter=%lu metadata_at_end=%lu live_at_end=%lu loads=%ld metadata=",
      (unsigned long)end.dumps, (unsigned long)end.dumps_failed, (unsigned long)end.samples, (unsigned long)end.stacks,
      (unsigned long)end.missed_frees, (unsigned long)end.lost_live_table_full, (unsigned long)end.lost_stack_table_full,
      (unsigned long)end.reentrant, (unsigned long)end.unwind_failed, (unsigned long)mark, (unsigned long)s.metadata_bytes,
      (unsigned long)end.live_samples, loads);
  for (long i = 0; i < points; i++) fprintf(stdout, "%s%lu", i == 0 ? "" : ",", (unsigned long)course[i]);
  fprintf(stdout, "\n");
  bool ok = end.missed_frees == 0 && end.dumps_failed == 0 && end.lost_live_table_full == 0 &&
            end.lost_stack_table_full == 0 && mark != 0 && s.metadata_bytes <= mark + SLACK_BYTES && end.live_samples < 100;
  return ok ? 0 : 1;
}
