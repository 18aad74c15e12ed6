/* SPDX-License-Identifier: MIT
 * bench_pause.c - how long malloc and free of other threads wait while a dump runs. Workers take a timestamp round every
 * call; the main thread dumps (--dumps=N, 0: only waits as long, the control) a live set made at rate 1.
 *   --samples=100000 --stacks=10000 --depth=40 --threads=3 --dumps=20 --gap_ms=50 --rate=524288: rate while measuring
 * Invariants  Every nanosecond of a worker lies in one interval (a call, or what is between calls). When an interval is
 *             longer than SLOW_NS the count of involuntary context switches tells whether the scheduler took the CPU away:
 *             such an interval is counted apart, what remains is waiting (a lock, a page fault, a spin).
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

struct worker {
  pthread_t thread;
  uint64_t random, calls, max_ns, preempted, preempted_max_ns, over_target;
  long switches; /* involuntary, when last looked */
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

static long involuntary_switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

/* Was the CPU taken away in the interval that has just ended? */
static int was_preempted(struct worker *worker) {
  long now = involuntary_switches();
  int was = now != worker->switches;
  worker->switches = now;
  return was;
}

static void record_call(struct worker *worker, uint64_t ns) {
  if (ns >= SLOW_NS && was_preempted(worker)) {
    worker->preempted++;
    if (ns > worker->preempted_max_ns) worker->preempted_max_ns = ns;
    return;
  }
  worker->calls++;
  worker->histogram[bucket_of(ns)]++;
  if (ns > worker->max_ns) worker->max_ns = ns;
  worker->over_target += ns > TARGET_NS;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  worker->switches = involuntary_switches();
  uint64_t before_ns = bench_wall_ns();
  while (!atomic_load_explicit(&is_done, memory_order_relaxed)) {
    uint64_t draw = bench_random(&worker->random);
    void **slot = &worker->slots[draw % SLOTS];
    uint64_t start_ns = bench_wall_ns();
    if (start_ns - before_ns >= SLOW_NS) was_preempted(worker);
    free(*slot);
    uint64_t middle_ns = bench_wall_ns();
    record_call(worker, middle_ns - start_ns);
    uint64_t again_ns = bench_wall_ns();
    if (again_ns - middle_ns >= SLOW_NS) was_preempted(worker);
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
  return (double)sum->max_ns;
}

static void add_worker(struct worker *sum, const struct worker *worker) {
  sum->calls += worker->calls;
  sum->preempted += worker->preempted;
  sum->over_target += worker->over_target;
  if (worker->max_ns > sum->max_ns) sum->max_ns = worker->max_ns;
  if (worker->preempted_max_ns > sum->preempted_max_ns) sum->preempted_max_ns = worker->preempted_max_ns;
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
  printf(
      "bench name=pause threads=%u dumps=%lu calls=%lu cpu_ns=%lu wall_ns=%lu p50_ns=%.0f p99_ns=%.0f p999_ns=%.0f "
      "p9999_ns=%.0f "
      "max_ns=%lu over_200us=%lu preempted=%lu preempted_max_ns=%lu dump_wall_ns=%lu file_bytes=%lu\n",
      threads, dumps, sum->calls, sum->max_ns, sum->max_ns, histogram_percentile_ns(sum, 50),
      histogram_percentile_ns(sum, 99), histogram_percentile_ns(sum, 99.9), histogram_percentile_ns(sum, 99.99), sum->max_ns,
      sum->over_target, sum->preempted, sum->preempted_max_ns, dumping_ns / rounds, bytes);
  return 0;
}
