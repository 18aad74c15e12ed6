/* SPDX-License-Identifier: MIT
 * bench_unwind.c - nanoseconds a walk, best of many short runs, beside unw_backtrace in the same process:
 *   same       the same stack again and again
 *   new        nothing of the record fits: every frame is stepped (the record is spoilt before each walk)
 *   first      a thread's first walk, rules known */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "remembered.h"
#include "walk_compare.h"

enum { RUNS = 3000, WALKS_A_RUN = 50, THREADS = 200 };

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static uintptr_t pcs[WALK_MAX];
static unsigned flags;
static size_t depth_seen;

static double best_of(void (*walk)(void)) {
  double best = 1e12;
  for (int run = 0; run < RUNS; run++) {
    double start = now_ns();
    for (int i = 0; i < WALKS_A_RUN; i++) walk();
    double each = (now_ns() - start) / WALKS_A_RUN;
    if (each < best) best = each;
  }
  return best;
}

static void HP_NOINLINE walk_same(void) { depth_seen = walk_ours(pcs, WALK_MAX, &flags); }
static void HP_NOINLINE walk_new(void) {
  if (hp_remembered_tls.record != NULL) hp_remembered_tls.record->frames[0].sp = UINTPTR_MAX;
  depth_seen = walk_ours(pcs, WALK_MAX, &flags);
}
static void HP_NOINLINE walk_libunwind(void) { unw_backtrace((void **)pcs, WALK_MAX); }

static void measure_leaf(void) {
  double same = best_of(walk_same);
  size_t depth = depth_seen;
  double new_stack = best_of(walk_new);
  double theirs = best_of(walk_libunwind);
  printf("| %zu | %.0f | %.1f | %.0f | %.1f | %.0f | %.1f |", depth, same, same / (double)depth, new_stack,
         new_stack / (double)depth, theirs, theirs / (double)depth);
}

static long HP_NOINLINE descend(int depth, void (*leaf)(void)) {
  volatile char buffer[24];
  buffer[0] = (char)depth;
  if (depth == 0) {
    leaf();
  } else {
    descend(depth - 1, leaf);
  }
  return buffer[0];
}

static void *walk_first(void *out_ns) {
  double start = now_ns();
  walk_ours(pcs, WALK_MAX, &flags);
  *(double *)out_ns = now_ns() - start;
  return NULL;
}

static int compare_doubles(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : a > b;
}

int main(void) {
  const int depths[] = {1, 16, 60, 196};
  puts(
      "| depth | same ns | a frame | new ns | a frame | unw_backtrace ns | a frame |\n| --- | --- | --- | --- | --- | --- | "
      "--- |");
  for (size_t i = 0; i < HP_ARRAY_LENGTH(depths); i++) {
    descend(depths[i], measure_leaf);
    puts("");
  }
  static double first_ns[THREADS];
  for (int i = 0; i < THREADS; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, walk_first, &first_ns[i]);
    pthread_join(thread, NULL);
  }
  qsort(first_ns, THREADS, sizeof(double), compare_doubles);
  printf("first walk of a thread: median %.0f ns, 95th percentile %.0f ns\n", first_ns[THREADS / 2],
         first_ns[THREADS * 95 / 100]);
  struct hp_unwind_stats stats;
  hp_unwind_get_stats(&stats);
  printf("%lu misses, %lu walks with the record, %lu bytes\n", stats.rule_misses, stats.prefix_reuses, stats.cache_bytes);
  return 0;
}
