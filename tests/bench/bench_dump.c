/* SPDX-License-Identifier: MIT
 * bench_dump.c - CPU time and size of a dump of many live samples. Run with every allocation recorded (rate 1).
 *   --samples=100000 --stacks=10000 --depth=40 --dumps=9 --threads=0: idle threads, so that a profiler which leaves the work
 *   to a helper of its own in a threaded program shows it. The first dump is told apart: names are looked up in it.
 * The file goes to the working directory and is removed.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench_profiler.h"
#include "bench_util.h"

enum { DUMPS_MAX = 64 };

static void *idle(void *argument) {
  (void)argument;
  for (;;) pause();
  return NULL;
}

int main(int argc, char **argv) {
  size_t samples = bench_option(argc, argv, "samples", 100000);
  uint64_t stacks = bench_option(argc, argv, "stacks", 10000), dumps = bench_option(argc, argv, "dumps", 9);
  unsigned depth = (unsigned)bench_option(argc, argv, "depth", 40),
           threads = (unsigned)bench_option(argc, argv, "threads", 0);
  void **blocks = calloc(samples + 1, sizeof *blocks);
  if (blocks == NULL) bench_fail("calloc");
  bench_profiler_allocate(blocks, samples, 64, stacks, depth);
  for (unsigned i = 0; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, idle, NULL) != 0) bench_fail("pthread_create");
  }
  uint64_t cpu_ns[DUMPS_MAX], wall_ns[DUMPS_MAX], first_cpu_ns = 0, bytes = 0;
  if (dumps < 1 || dumps > DUMPS_MAX) dumps = DUMPS_MAX;
  char path[64];
  snprintf(path, sizeof path, "bench_dump.%d.profile", getpid());
  for (uint64_t i = 0; i <= dumps; i++) {
    uint64_t wall_start_ns = bench_wall_ns(), cpu_start_ns = bench_cpu_ns();
    bytes = bench_profiler_dump(path);
    uint64_t used_ns = bench_cpu_ns() - cpu_start_ns;
    if (i == 0) first_cpu_ns = used_ns;
    if (i > 0) cpu_ns[i - 1] = used_ns;
    if (i > 0) wall_ns[i - 1] = bench_wall_ns() - wall_start_ns;
  }
  bench_sort(cpu_ns, dumps);
  bench_sort(wall_ns, dumps);
  double median_ns = bench_percentile(cpu_ns, dumps, 50);
  printf(
      "bench name=dump samples=%zu stacks=%lu depth=%u threads=%u cpu_ns=%.0f mean_cpu_ns=%.0f wall_ns=%.0f "
      "first_cpu_ns=%lu "
      "file_bytes=%lu\n",
      samples, stacks, depth, threads, median_ns, median_ns, bench_percentile(wall_ns, dumps, 50), first_cpu_ns, bytes);
  return 0;
}
