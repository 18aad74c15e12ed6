/* SPDX-License-Identifier: MIT
 * bench_first_sample.c - what a new thread waits for at its first sample. Run with every allocation recorded (rate 1): the
 * first malloc of each thread is then its first sample. The allocator's own first time is in it as well: subtract a run
 * without a profiler.
 *   --threads=300 --depth=20: threads one after the other; medians of wall time of the 1st, 2nd and 3rd malloc in each.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench_frames.h"
#include "bench_util.h"

enum { CALLS = 3, THREADS_MAX = 4096 };

static uint64_t took_ns[CALLS][THREADS_MAX];

struct visit {
  unsigned depth;
  uint64_t thread;
};

static uint64_t time_at_leaf(struct bench_descent *descent) {
  const struct visit *visit = descent->closure;
  void *blocks[CALLS];
  for (unsigned i = 0; i < CALLS; i++) {
    uint64_t start_ns = bench_wall_ns();
    blocks[i] = malloc(64);
    bench_touch(blocks[i]);
    took_ns[i][visit->thread] = bench_wall_ns() - start_ns;
  }
  for (unsigned i = 0; i < CALLS; i++) free(blocks[i]);
  return descent->path;
}

static void *visit_thread(void *argument) {
  struct visit *visit = argument;
  struct bench_descent descent = {.leaf = time_at_leaf, .closure = visit};
  bench_descend(visit->depth, &descent);
  return NULL;
}

int main(int argc, char **argv) {
  uint64_t threads = bench_option(argc, argv, "threads", 300);
  if (threads < 1 || threads > THREADS_MAX) threads = THREADS_MAX;
  for (uint64_t i = 0; i < threads; i++) {
    struct visit visit = {(unsigned)bench_option(argc, argv, "depth", 20), i};
    pthread_t thread;
    if (pthread_create(&thread, NULL, visit_thread, &visit) != 0) bench_fail("pthread_create");
    pthread_join(thread, NULL);
  }
  uint64_t cold_ns = took_ns[0][0]; /* the very first one also fills every cache there is */
  for (unsigned i = 0; i < CALLS; i++) bench_sort(took_ns[i], threads);
  double first_ns = bench_percentile(took_ns[0], threads, 50);
  printf(
      "bench name=first_sample threads=%lu cpu_ns=%.0f mean_cpu_ns=%.0f wall_ns=%.0f second_ns=%.0f third_ns=%.0f "
      "cold_ns=%lu "
      "p99_ns=%.0f\n",
      threads, first_ns, first_ns, first_ns, bench_percentile(took_ns[1], threads, 50),
      bench_percentile(took_ns[2], threads, 50), cold_ns, bench_percentile(took_ns[0], threads, 99));
  return 0;
}
