/* SPDX-License-Identifier: MIT
 * bias.c - is the mean of estimate / truth 1? Over sizes, rates and seeds, for objects and bytes, allocated and in use; alone,
 * in two threads, freed by another thread, grown by realloc, across a fork, after a change of rate. Prints the table of
 * docs/accuracy.md; fails where the mean is more than 4 standard errors off. Run under the testing build.
 *   bias [SEEDS [WORD]]     WORD: only the scenarios whose name begins so
 * The standard error is the one of theory (sum of s^2 (1-p)/p): the one of the runs themselves is too small where a few rare small
 * blocks weigh most. Blocks are reported to the library (the same sampler, without the allocator's time), but for realloc. Half of them is freed. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heapprof.h"
#include "heapprof_testing.h"

enum { COLUMNS = 4, MIXED = 0xFFFF };

/* What was allocated and is in use, and the variance of each estimate of it: sum of (1-p)/p, times s^2 for bytes. */
struct truth {
  double values[COLUMNS], variances[COLUMNS];
};

/* One run: allocate and free what `count` and `size` say at this rate; fill in the truth. */
typedef void scenario(uint64_t size, long count, uint64_t rate, struct truth *out);

static uintptr_t next_address = (uintptr_t)1 << 46;

static uint64_t size_of(uint64_t size, long i) {
  static const uint64_t mix[] = {16, 24, 100, 16, 4096, 64, 1000, 16, 65536, 300};
  return size == MIXED ? mix[i % 10] : size;
}

static void allocate(uintptr_t base, uint64_t size, long from, long to) {
  for (long i = from; i < to; i++) heapprof_report_alloc((void *)(base + (uintptr_t)i * 16), size_of(size, i));
}
static void release(uintptr_t base, long from, long to) { /* a half of each size: twenty are two rounds of the mix */
  for (long i = from; i < to; i++) {
    if (i / 10 % 2 == 1) heapprof_report_free((void *)(base + (uintptr_t)i * 16));
  }
}
static void count_block(double size, double rate, bool is_live, struct truth *out) {
  double variance = 1 / expm1(fmax(size, 1) / rate);
  for (int c = 0; c < (is_live ? 4 : 2); c++) {
    out->values[c] += c % 2 == 0 ? 1 : size;
    out->variances[c] += c % 2 == 0 ? variance : size * size * variance;
  }
}
static void count_blocks(uint64_t size, long from, long to, uint64_t rate, struct truth *out) {
  for (long i = from; i < to; i++) count_block((double)size_of(size, i), (double)rate, i / 10 % 2 == 0, out);
}
static uintptr_t take_addresses(long count) {
  uintptr_t base = next_address;
  next_address += (uintptr_t)count * 16;
  return base;
}

static void alone(uint64_t size, long count, uint64_t rate, struct truth *out) {
  uintptr_t base = take_addresses(count);
  heapprof_set_sample_rate(rate);
  allocate(base, size, 0, count);
  release(base, 0, count);
  count_blocks(size, 0, count, rate, out);
}

static void changed_rate(uint64_t size, long count, uint64_t rate, struct truth *out) {
  uintptr_t base = take_addresses(count);
  heapprof_set_sample_rate(rate);
  allocate(base, size, 0, count / 2);
  heapprof_set_sample_rate(rate / 3);
  allocate(base, size, count / 2, count);
  heapprof_set_sample_rate(rate * 5);
  release(base, 0, count);
  count_blocks(size, 0, count / 2, rate, out);
  count_blocks(size, count / 2, count, rate / 3, out);
}

/* Two threads live through all runs (a new one would cost allocations of the C library's). */
static struct {
  pthread_barrier_t begin, middle, end;
  uint64_t size, rate;
  uintptr_t base;
  long count;
  bool frees_others;
} work;

static void *worker(void *argument) {
  intptr_t half = (intptr_t)argument;
  while (true) {
    pthread_barrier_wait(&work.begin);
    long middle = work.count / 2, from = half == 0 ? 0 : middle, to = half == 0 ? middle : work.count;
    allocate(work.base, work.size, from, to);
    pthread_barrier_wait(&work.middle);
    if (work.frees_others) { /* what the other one allocated */
      release(work.base, half == 0 ? middle : 0, half == 0 ? work.count : middle);
    } else {
      release(work.base, from, to);
    }
    pthread_barrier_wait(&work.end);
  }
  return NULL;
}

static void start_workers(void) {
  pthread_t thread;
  pthread_barrier_init(&work.begin, NULL, 3);
  pthread_barrier_init(&work.middle, NULL, 2);
  pthread_barrier_init(&work.end, NULL, 3);
  for (intptr_t i = 0; i < 2; i++) pthread_create(&thread, NULL, worker, (void *)i);
}

static void with_workers(uint64_t size, long count, uint64_t rate, struct truth *out) {
  heapprof_set_sample_rate(0);
  heapprof_set_sample_rate(rate); /* both draw anew */
  work.size = size;
  work.count = count;
  work.base = take_addresses(count);
  pthread_barrier_wait(&work.begin);
  pthread_barrier_wait(&work.end);
  count_blocks(size, 0, count, rate, out);
}
static void two_threads(uint64_t size, long count, uint64_t rate, struct truth *out) {
  work.frees_others = false;
  with_workers(size, count, rate, out);
}
static void freed_elsewhere(uint64_t size, long count, uint64_t rate, struct truth *out) {
  work.frees_others = true;
  with_workers(size, count, rate, out);
}

/* A vector that doubles up to `size`, again and again; each second one is freed. */
static void *vectors[1001];
static long vector_count;
static void grown(uint64_t size, long count, uint64_t rate, struct truth *out) {
  vector_count = count / 4 + 1;
  heapprof_set_sample_rate(rate);
  for (long i = 0; i < vector_count; i++) {
    void *p = NULL;
    for (uint64_t n = size / 16 + 1; n <= size * 2; n *= 2) {
      p = realloc(p, n);
      count_block((double)n, (double)rate, n * 2 > size * 2 && i % 2 == 0, out);
    }
    vectors[i] = p;
  }
  for (long i = 1; i < vector_count; i += 2) free(vectors[i]);
}
/* Half before the fork, half in the child, which frees of both and tells. */
static double child_sums[COLUMNS];
static bool has_child_sums;
static void forked(uint64_t size, long count, uint64_t rate, struct truth *out) {
  uintptr_t base = take_addresses(count);
  int ends[2];
  heapprof_set_sample_rate(rate);
  allocate(base, size, 0, count / 2);
  if (pipe(ends) != 0) _exit(9);
  pid_t child = fork();
  if (child == 0) {
    double sums[COLUMNS];
    allocate(base, size, count / 2, count);
    release(base, 0, count);
    heapprof_set_sample_rate(0);
    heapprof_test_sums(sums);
    _exit(write(ends[1], sums, sizeof sums) == sizeof sums ? 0 : 1);
  }
  close(ends[1]);
  has_child_sums = read(ends[0], child_sums, sizeof child_sums) == sizeof child_sums;
  close(ends[0]);
  waitpid(child, NULL, 0);
  if (!has_child_sums) _exit(8);
  count_blocks(size, 0, count, rate, out);
}

static int failures;

static void run(const char *name, scenario *play, uint64_t size, uint64_t rate, int seeds) {
  /* About twelve samples a run, and never less than sixty blocks. */
  double mean = size == MIXED ? 7115.2 : size == 0 ? 1 : (double)size;
  long count = (long)(12 * (double)rate / mean);
  const char *is_long = getenv("HEAPPROF_LONG");
  long most = is_long != NULL && is_long[0] == '1' ? 600000 : 100000;
  if (size == MIXED) count = (long)rate / 8; /* its small blocks decide, and must be met */
  if (count < 60) count = 60;
  if (count > most) count = most;
  if (play == grown && count > 4000) count = 4000;
  count = (count + 39) / 40 * 40;
  double sum[COLUMNS] = {0}, variance[COLUMNS] = {0};
  for (int seed = 1; seed <= seeds; seed++) {
    double before[COLUMNS], after[COLUMNS];
    struct truth truth = {{0}, {0}};
    heapprof_set_sample_rate(0);
    heapprof_test_sums(before);
    heapprof_test_seed((uint64_t)seed * 1000003 + size * 17 + rate);
    has_child_sums = false;
    play(size, count, rate, &truth);
    heapprof_set_sample_rate(0);
    heapprof_test_sums(after);
    for (long i = 0; i < count; i++) heapprof_report_free((void *)(next_address - (uintptr_t)(i + 1) * 16));
    for (; vector_count > 0; vector_count--) { /* those that were in use */
      if ((vector_count - 1) % 2 == 0) free(vectors[vector_count - 1]);
    }
    for (int c = 0; c < COLUMNS; c++) {
      double estimate = (has_child_sums ? child_sums[c] : after[c]) - before[c];
      double ratio = truth.values[c] == 0 ? 1 : estimate / truth.values[c];
      sum[c] += ratio;
      if (truth.values[c] != 0) variance[c] += truth.variances[c] / (truth.values[c] * truth.values[c]);
    }
  }
  printf("| %s | ", name);
  if (size == MIXED) {
    printf("mix");
  } else {
    printf("%lu", (unsigned long)size);
  }
  printf(" | %luk |", (unsigned long)rate >> 10);
  for (int c = 0; c < COLUMNS; c++) {
    double average = sum[c] / seeds, error = sqrt(variance[c]) / seeds;
    bool is_right = fabs(average - 1) <= 4 * error + 1e-6;
    if (!is_right) failures++;
    printf(" %.4f ± %.4f%s |", average, error, is_right ? "" : " WRONG");
  }
  printf("\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  static const uint64_t sizes[] = {0, 1, 16, 100, 1000, 4096, 65536, 524288, 3000000, MIXED};
  static const uint64_t rates[] = {1 << 10, 16 << 10, 512 << 10};
  static const struct {
    const char *name;
    scenario *play;
  } scenarios[] = {{"one thread", alone},          {"two threads", two_threads}, {"freed by another", freed_elsewhere},
                   {"rate changed", changed_rate}, {"realloc growth", grown},    {"fork between", forked}};
  int seeds = argc > 1 ? atoi(argv[1]) : 200;
  setvbuf(stdout, NULL, _IOLBF, 4096);
  heapprof_set_sample_rate(0);
  start_workers();
  printf(
      "| how | size | R | alloc objects | alloc bytes | in use objects | in use bytes |\n|---|---|---|---|---|---|---|\n");
  for (size_t s = 0; s < sizeof scenarios / sizeof scenarios[0]; s++) {
    if (argc > 2 && strncmp(scenarios[s].name, argv[2], strlen(argv[2])) != 0) continue;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      if (scenarios[s].play == grown && (sizes[i] < 16 || sizes[i] == MIXED || sizes[i] > 1 << 20)) continue;
      for (size_t r = 0; r < 3; r++) run(scenarios[s].name, scenarios[s].play, sizes[i], rates[r], seeds);
    }
  }
  printf("%d wrong\n", failures);
  return failures == 0 ? 0 : 1;
}
