/* SPDX-License-Identifier: MIT
 * bench_depth.c - a block allocated and freed at the bottom of a stack of the wanted depth. Every few blocks the stack is
 * left and entered again, as a program does. What a sample costs comes from runs at several rates (scripts/bench fits the
 * slope).
 *   --depth=20 --size=512 --iterations=N --repeat=16 blocks for each way down --stacks=1: how many distinct stacks, chosen
 * at random, they differ nearest the leaf. One stack is the kindest case for anything that remembers the last one.
 */
#include <stdlib.h>

#include "bench_frames.h"
#include "bench_util.h"

struct task {
  size_t size;
  uint64_t repeat;
};

static uint64_t pairs_at_leaf(struct bench_descent *descent) {
  const struct task *task = descent->closure;
  for (uint64_t i = 0; i < task->repeat; i++) {
    void *block = malloc(task->size);
    bench_touch(block);
    free(block);
  }
  return descent->path;
}

static BENCH_NOINLINE void walk(struct bench_descent *descent, unsigned depth, uint64_t stacks, uint64_t count) {
  static uint64_t random = 88172645463325252u;
  for (uint64_t i = 0; i < count; i++) {
    descent->path = stacks > 1 ? (bench_random(&random) >> 32) % stacks : 0;
    bench_descend(depth, descent);
  }
}

int main(int argc, char **argv) {
  unsigned depth = (unsigned)bench_option(argc, argv, "depth", 20);
  uint64_t stacks = bench_option(argc, argv, "stacks", 1);
  struct task task = {bench_option(argc, argv, "size", 512), bench_option(argc, argv, "repeat", 16)};
  if (task.repeat == 0) task.repeat = 1;
  uint64_t descents = bench_option(argc, argv, "iterations", 4000000) / task.repeat / 20 + 1, chunk = descents * task.repeat;
  struct bench_clock clock;
  struct bench_descent descent = {.leaf = pairs_at_leaf, .closure = &task};
  walk(&descent, depth, stacks, descents);
  bench_clock_start(&clock);
  for (unsigned i = 0; i < 20; i++) {
    walk(&descent, depth, stacks, descents);
    bench_clock_chunk(&clock);
  }
  bench_clock_stop(&clock);
  printf("bench name=depth depth=%u size=%zu stacks=%lu iterations=%lu cpu_ns=%.4f mean_cpu_ns=%.4f wall_ns=%.4f\n", depth,
         task.size, stacks, chunk * 20, bench_clock_median_chunk_ns(&clock) / (double)chunk,
         (double)clock.cpu_ns / (double)(chunk * 20), (double)clock.wall_ns / (double)(chunk * 20));
  return 0;
}
