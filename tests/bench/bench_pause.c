/* SPDX-License-Identifier: MIT
 * bench_pause.c - how long malloc and free of other threads wait while a dump runs. Workers take a timestamp round every
 * call; the main thread dumps (--dumps=N, 0: only waits as long, the control) a live set made at rate 1.
 *   --samples=100000 --stacks=10000 --depth=40 --threads=3 --dumps=20 --gap_ms=50 --rate=524288: rate while measuring
 * Invariants  Every nanosecond of a worker lies in one interval (a call, or what is between calls). When an interval is
 *             longer than SLOW_NS the thread's context switches tell why: it slept (waited: a lock), or the scheduler took
 *             the CPU away (preempted), or neither: a spin, a page fault, or a hypervisor that ran somebody else (other).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench_profiler.h"
#include "bench_util.h"
#include "heapprof.h"

enum { SLOW_NS = 30000, TARGET_NS = 200000, BUCKETS = 64 * 8, SLOTS = 512 };

enum reason { OTHER, WAITED, PREEMPTED, REASONS };

struct worker {
  pthread_t thread;
  uint64_t random, calls;
  uint64_t slow[REASONS], over_target[REASONS], max_ns[REASONS];
  long voluntary, involuntary; /* context switches when last looked */
  uint64_t histogram[BUCKETS];
  void *slots[SLOTS];
};

static atomic_bool is_done;

/* Eight buckets to each power of two. */
static unsigned bucket_of(uint64_t ns) {
  if (ns < 8) return (unsigned)ns;
  unsigned power = 63 - (unsigned)__builtin_clzll(ns);
  return power * 8 + (unsigned)((ns >> (power - 3)) & 7);
}

static uint64_t bucket_end_ns(unsigned bucket) {
  return bucket < 8 ? bucket : (UINT64_C(9) + (bucket & 7)) << (bucket / 8 - 3);
}

/* Why did the interval that has just ended take so long? */
static enum reason reason_of(struct worker *worker) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  enum reason reason = usage.ru_nvcsw != worker->voluntary      ? WAITED
                       : usage.ru_nivcsw != worker->involuntary ? PREEMPTED
                                                                : OTHER;
  worker->voluntary = usage.ru_nvcsw;
  worker->involuntary = usage.ru_nivcsw;
  return reason;
}

static void record_call(struct worker *worker, uint64_t ns) {
  enum reason reason = OTHER;
  if (ns >= SLOW_NS) {
    reason = reason_of(worker);
    worker->slow[reason]++;
    worker->over_target[reason] += ns > TARGET_NS;
  }
  if (ns > worker->max_ns[reason]) worker->max_ns[reason] = ns;
  if (reason == PREEMPTED) return; /* says nothing about the call */
  worker->calls++;
  worker->histogram[bucket_of(ns)]++;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  reason_of(worker);
  uint64_t before_ns = bench_wall_ns();
  while (!atomic_load_explicit(&is_done, memory_order_relaxed)) {
    uint64_t draw = bench_random(&worker->random);
    void **slot = &worker->slots[draw % SLOTS];
    uint64_t start_ns = bench_wall_ns();
    if (start_ns - before_ns >= SLOW_NS) reason_of(worker);
    free(*slot);
    uint64_t middle_ns = bench_wall_ns();
    record_call(worker, middle_ns - start_ns);
    uint64_t again_ns = bench_wall_ns();
    if (again_ns - middle_ns >= SLOW_NS) reason_of(worker);
    *slot = malloc(16 + ((draw >> 40) & 511));
    bench_touch(*slot);
    before_ns = bench_wall_ns();
    record_call(worker, before_ns - again_ns);
  }
  return NULL;
}

static double histogram_percentile_ns(const struct worker *sum, double percent) {
  uint64_t wanted = (uint64_t)((double)sum->calls * percent / 100), seen = 0;
  for (unsigned i = 0; i < BUCKETS; i++) {
    seen += sum->histogram[i];
    if (seen > wanted) return (double)bucket_end_ns(i);
  }
  return (double)sum->max_ns[WAITED];
}

static void add_worker(struct worker *sum, const struct worker *worker) {
  sum->calls += worker->calls;
  for (unsigned i = 0; i < REASONS; i++) {
    sum->slow[i] += worker->slow[i];
    sum->over_target[i] += worker->over_target[i];
    if (worker->max_ns[i] > sum->max_ns[i]) sum->max_ns[i] = worker->max_ns[i];
  }
  for (unsigned i = 0; i < BUCKETS; i++) sum->histogram[i] += worker->histogram[i];
}

int main(int argc, char **argv) {
  size_t samples = bench_option(argc, argv, "samples", 100000);
  unsigned threads = (unsigned)bench_option(argc, argv, "threads", 3),
           depth = (unsigned)bench_option(argc, argv, "depth", 40);
  uint64_t dumps = bench_option(argc, argv, "dumps", 20), gap_ms = bench_option(argc, argv, "gap_ms", 50);
  void **blocks = calloc(samples + 1, sizeof *blocks);
  struct worker *workers = calloc(threads + 1, sizeof *workers);
  if (blocks == NULL || workers == NULL) bench_fail("calloc");
  bench_profiler_allocate(blocks, samples, 64, bench_option(argc, argv, "stacks", 10000), depth);
  char path[64];
  snprintf(path, sizeof path, "bench_pause.%d.profile", getpid());
  bench_profiler_dump(path); /* names are resolved once */
  heapprof_set_sample_rate(bench_option(argc, argv, "rate", 524288));
  for (unsigned i = 0; i < threads; i++) {
    workers[i].random = 88172645463325252u + i * 7919;
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) bench_fail("pthread_create");
  }
  struct timespec gap = {(time_t)(gap_ms / 1000), (long)(gap_ms % 1000) * 1000000};
  uint64_t dumping_ns = 0, rounds = dumps ? dumps : bench_option(argc, argv, "rounds", 20), bytes = 0;
  for (uint64_t i = 0; i < rounds; i++) {
    nanosleep(&gap, NULL);
    uint64_t start_ns = bench_wall_ns();
    if (dumps) bytes = bench_profiler_dump(path);
    dumping_ns += bench_wall_ns() - start_ns;
    if (!dumps) nanosleep(&gap, NULL);
  }
  atomic_store(&is_done, 1);
  struct worker *sum = &workers[threads];
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(workers[i].thread, NULL);
    add_worker(sum, &workers[i]);
  }
  static const char *const names[REASONS] = {"other", "waited", "preempted"};
  printf(
      "bench name=pause threads=%u dumps=%lu calls=%lu p50_ns=%.0f p99_ns=%.0f p999_ns=%.0f p9999_ns=%.0f dump_wall_ns=%lu "
      "file_bytes=%lu",
      threads, dumps, sum->calls, histogram_percentile_ns(sum, 50), histogram_percentile_ns(sum, 99),
      histogram_percentile_ns(sum, 99.9), histogram_percentile_ns(sum, 99.99), dumping_ns / rounds, bytes);
  for (unsigned i = 0; i < REASONS; i++) {
    printf(" %s=%lu %s_over_200us=%lu %s_max_ns=%lu", names[i], sum->slow[i], names[i], sum->over_target[i], names[i],
           sum->max_ns[i]);
  }
  printf("\n");
  return 0;
}
