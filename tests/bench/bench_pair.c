/* SPDX-License-Identifier: MIT
 * bench_pair.c - malloc and free of one block, again and again: the shortest way through an allocator, hence the largest
 * share of whatever stands in front of it.
 *   --size=16 --iterations=N   --live=N: first allocate N blocks of 64 B, all sampled (rate 1, through the API of the
 *   library when it is there), then go on at --rate: is the free of a block that was never sampled still cheap?
 *   Without --live the rate is left as the environment says.
 */
#include <stdlib.h>

#include "bench_util.h"
#include "heapprof.h"

static BENCH_NOINLINE void pairs(uint64_t count, size_t size) {
  for (uint64_t i = 0; i < count; i++) {
    void *block = malloc(size);
    bench_touch(block);
    free(block);
  }
}

static void allocate_live(uint64_t count, uint64_t rate_bytes) {
  if (count == 0) return;
  heapprof_set_sample_rate(1);
  void *last = NULL; /* a chain keeps the blocks reachable without a second array */
  for (uint64_t i = 0; i < count; i++) {
    void **block = malloc(64);
    if (block == NULL) bench_fail("malloc");
    *block = last;
    last = block;
  }
  bench_touch(last);
  heapprof_set_sample_rate(rate_bytes);
}

int main(int argc, char **argv) {
  uint64_t iterations = bench_option(argc, argv, "iterations", 20000000);
  size_t size = bench_option(argc, argv, "size", 16);
  uint64_t live = bench_option(argc, argv, "live", 0);
  uint64_t chunk = iterations / 20 + 1;
  struct bench_clock clock;
  allocate_live(live, bench_option(argc, argv, "rate", 524288));
  pairs(iterations / 50 + 1, size);
  bench_clock_start(&clock);
  for (unsigned i = 0; i < 20; i++) {
    pairs(chunk, size);
    bench_clock_chunk(&clock);
  }
  bench_clock_stop(&clock);
  printf("bench name=pair size=%zu live=%lu iterations=%lu cpu_ns=%.4f mean_cpu_ns=%.4f wall_ns=%.4f\n", size, live,
         chunk * 20, bench_clock_median_chunk_ns(&clock) / (double)chunk, (double)clock.cpu_ns / (double)(chunk * 20),
         (double)clock.wall_ns / (double)(chunk * 20));
  return 0;
}
