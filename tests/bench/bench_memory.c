/* SPDX-License-Identifier: MIT
 * bench_memory.c - the profiler's memory: for each live sample, for each distinct stack, and after they are gone. Run with
 * every allocation recorded (rate 1) and a ceiling that is not reached.
 *   --samples=1000000 --stacks=1000000 --depth=24 --wait=1 seconds between the frees and a dump, then a look at what is left
 * Private memory of the process is printed at each step too: the difference to a run without a profiler is what the profiler
 * takes, whatever it says of itself. With --samples=0 --stacks=0 it is a small program: 1 MiB in 1024 blocks.
 */
#include <stdlib.h>
#include <unistd.h>

#include "bench_profiler.h"
#include "bench_util.h"
#include "heapprof.h"

struct level {
  uint64_t own_bytes, private_bytes, rss_bytes, live, stacks;
};

static struct level level_now(void) {
  struct heapprof_stats stats = {0};
  struct bench_memory memory = bench_memory_now();
  if (heapprof_stats(&stats) != 0) stats = (struct heapprof_stats){0};
  return (struct level){stats.metadata_bytes, memory.private_bytes, memory.rss_bytes, stats.live_samples, stats.stacks};
}

static void print_level(const char *name, struct level level) {
  printf(" %s_own=%lu %s_private=%lu %s_rss=%lu %s_live=%lu %s_stacks=%lu", name, level.own_bytes, name, level.private_bytes,
         name, level.rss_bytes, name, level.live, name, level.stacks);
}

int main(int argc, char **argv) {
  size_t samples = bench_option(argc, argv, "samples", 1000000);
  uint64_t stacks = bench_option(argc, argv, "stacks", 1000000);
  unsigned depth = (unsigned)bench_option(argc, argv, "depth", 24); /* 23 levels with two call sites: 2^23 stacks */
  size_t small = samples == 0 ? 1024 : 0, count = samples + small;
  void **blocks = calloc(count + 1, sizeof *blocks);
  if (blocks == NULL) bench_fail("calloc");
  for (size_t i = 0; i <= count; i++) ((void *volatile *)blocks)[i] = NULL; /* pages of the array are there from the start */
  struct level start = level_now();
  uint64_t cpu_start_ns = bench_cpu_ns();
  bench_profiler_allocate(blocks, count, small ? 1024 : 64, 16, depth);
  struct level live = level_now();
  for (size_t i = 0; i < count; i++) free(blocks[i]);
  struct level freed = level_now();
  uint64_t cpu_ns = bench_cpu_ns() - cpu_start_ns;
  sleep((unsigned)bench_option(argc, argv, "wait", 1)); /* whatever is given back later has had its time, and an occasion */
  for (unsigned i = 0; i < 1000; i++) {
    bench_profiler_allocate(blocks, 16, 64, 16, depth);
    for (unsigned k = 0; k < 16; k++) free(blocks[k]);
  }
  bench_profiler_dump("bench_memory.profile");
  struct level settled = level_now();
  bench_profiler_visit_stacks(stacks, depth);
  struct level visited = level_now();
  printf("bench name=memory samples=%zu distinct=%lu depth=%u cpu_ns=%lu", samples, stacks, depth, cpu_ns);
  print_level("start", start);
  print_level("live", live);
  print_level("freed", freed);
  print_level("settled", settled);
  print_level("visited", visited);
  printf("\n");
  return 0;
}
