/* SPDX-License-Identifier: MIT
 * bench_util.h - what every benchmark program needs: clocks, options, random numbers, one parseable line of results.
 * Callers     the bench_*.c programs; nothing here allocates between bench_clock_start and bench_clock_stop.
 * Output      `bench name=pair size=16 ... cpu_ns=7.41`: one line on stdout, space-separated key=value, read by
 * scripts/bench.
 */
#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __clang__
#define BENCH_NOINLINE __attribute__((noinline))
#else
#define BENCH_NOINLINE __attribute__((noinline, noclone))
#endif

/* Chunks of one timed loop: the median chunk is what the noise of a shared machine leaves alone, the mean hides nothing. */
enum { BENCH_CHUNKS_MAX = 64 };

struct bench_clock {
  uint64_t cpu_start_ns, wall_start_ns, chunk_start_ns;
  uint64_t cpu_ns, wall_ns; /* set by bench_clock_stop */
  unsigned chunks;
  uint64_t chunk_ns[BENCH_CHUNKS_MAX]; /* CPU time of each chunk, of the calling thread's whole process */
};

uint64_t bench_cpu_ns(void);    /* CPU time of this process, all threads */
uint64_t bench_wall_ns(void);   /* CLOCK_MONOTONIC */
uint64_t bench_thread_ns(void); /* CPU time of this thread */

void bench_clock_start(struct bench_clock *clock);
void bench_clock_chunk(struct bench_clock *clock); /* a chunk ends here; at most BENCH_CHUNKS_MAX of them */
void bench_clock_stop(struct bench_clock *clock);
/* Median CPU time of a chunk, ns; sorts chunk_ns. Without chunks: the whole. */
double bench_clock_median_chunk_ns(struct bench_clock *clock);

/* xorshift64*: one multiplication, good enough to choose sizes and slots. The state must not be 0. */
static inline uint64_t bench_random(uint64_t *state) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * UINT64_C(2685821657736338717);
}

/* Touch the block so that neither the compiler nor a lazy allocator can leave it out. */
static inline void bench_touch(void *block) {
  *(volatile char *)block = 1;
  __asm__ volatile("" : : "r"(block) : "memory");
}

/* Value of `--NAME=N` among the arguments, `fallback` without it. Ends the program with status 2 on a bad number. */
uint64_t bench_option(int argc, char **argv, const char *name, uint64_t fallback);

/* Ends the program with status 1 after `what: strerror(errno)`. */
_Noreturn void bench_fail(const char *what);

/* Memory of this process, bytes: private pages (clean and dirty) and resident ones, from /proc/self/smaps_rollup. */
struct bench_memory {
  uint64_t private_bytes, rss_bytes;
};
struct bench_memory bench_memory_now(void);

/* The value below which `percent` of the sorted array lies. */
double bench_percentile(const uint64_t *sorted, size_t count, double percent);
void bench_sort(uint64_t *values, size_t count);

#endif
