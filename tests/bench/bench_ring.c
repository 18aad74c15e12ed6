/* SPDX-License-Identifier: MIT
 * bench_ring.c - a ring of live blocks (10^6 of them, 16..256 B): each step frees the oldest and allocates another. The
 * heap does not fit the caches, so a look-aside table asked at every free shows what its misses cost.
 *   --blocks=N --iterations=N
 */
#include <stdlib.h>

#include "bench_util.h"

struct ring {
  void **blocks;
  uint64_t count, at;
  uint64_t random;
};

static BENCH_NOINLINE void turn(struct ring *ring, uint64_t steps) {
  for (uint64_t i = 0; i < steps; i++) {
    free(ring->blocks[ring->at]);
    void *block = malloc(16 + (bench_random(&ring->random) & 0xf0));
    bench_touch(block);
    ring->blocks[ring->at] = block;
    if (++ring->at == ring->count) ring->at = 0;
  }
}

int main(int argc, char **argv) {
  struct ring ring = {.count = bench_option(argc, argv, "blocks", 1000000), .random = 88172645463325252u};
  uint64_t iterations = bench_option(argc, argv, "iterations", 3000000);
  uint64_t chunk = iterations / 10 + 1;
  struct bench_clock clock;
  ring.blocks = calloc(ring.count, sizeof *ring.blocks);
  if (ring.blocks == NULL) bench_fail("calloc");
  turn(&ring, ring.count * 2);
  bench_clock_start(&clock);
  for (unsigned i = 0; i < 10; i++) {
    turn(&ring, chunk);
    bench_clock_chunk(&clock);
  }
  bench_clock_stop(&clock);
  printf("bench name=ring blocks=%lu iterations=%lu cpu_ns=%.4f mean_cpu_ns=%.4f wall_ns=%.4f\n", ring.count, chunk * 10,
         bench_clock_median_chunk_ns(&clock) / (double)chunk, (double)clock.cpu_ns / (double)(chunk * 10),
         (double)clock.wall_ns / (double)(chunk * 10));
  return 0;
}
