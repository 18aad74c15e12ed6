/* SPDX-License-Identifier: MIT
 * bench_threads.c - threads exchange blocks through shared slots: each step allocates a block of 16..1039 B, swaps it with
 * whatever lies in a random slot and frees that, so most blocks are freed by another thread than the one that made them.
 *   --threads=8 --iterations=N (of each thread) --slots=16384
 * CPU time is the process's, wall time from the moment all threads are ready until the last one is done.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench_util.h"

struct exchange {
  pthread_barrier_t ready;
  _Atomic(void *) *slots;
  uint64_t slot_count, iterations;
};

struct worker {
  pthread_t thread;
  struct exchange *exchange;
  uint64_t random;
};

static BENCH_NOINLINE void steps(struct exchange *exchange, uint64_t *random) {
  for (uint64_t i = 0; i < exchange->iterations; i++) {
    uint64_t draw = bench_random(random);
    void *block = malloc(16 + ((draw >> 54) & 1023));
    bench_touch(block);
    free(atomic_exchange_explicit(&exchange->slots[(draw >> 20) % exchange->slot_count], block, memory_order_acq_rel));
  }
}

static void *work(void *argument) {
  struct worker *worker = argument;
  pthread_barrier_wait(&worker->exchange->ready);
  steps(worker->exchange, &worker->random);
  pthread_barrier_wait(&worker->exchange->ready);
  return NULL;
}

int main(int argc, char **argv) {
  unsigned threads = (unsigned)bench_option(argc, argv, "threads", 8);
  struct exchange exchange = {.slot_count = bench_option(argc, argv, "slots", 16384),
                              .iterations = bench_option(argc, argv, "iterations", 500000)};
  exchange.slots = calloc(exchange.slot_count, sizeof *exchange.slots);
  struct worker *workers = calloc(threads, sizeof *workers);
  if (exchange.slots == NULL || workers == NULL) bench_fail("calloc");
  pthread_barrier_init(&exchange.ready, NULL, threads + 1);
  for (unsigned i = 0; i < threads; i++) {
    workers[i].exchange = &exchange;
    workers[i].random = 88172645463325252u + i * 7919;
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) bench_fail("pthread_create");
  }
  struct bench_clock clock;
  bench_clock_start(&clock);
  pthread_barrier_wait(&exchange.ready);
  pthread_barrier_wait(&exchange.ready);
  bench_clock_stop(&clock);
  for (unsigned i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
  double operations = (double)exchange.iterations * threads;
  printf("bench name=threads threads=%u iterations=%lu cpu_ns=%.4f mean_cpu_ns=%.4f wall_ns=%.4f million_a_second=%.4f\n",
         threads, exchange.iterations, (double)clock.cpu_ns / operations, (double)clock.cpu_ns / operations,
         (double)clock.wall_ns / operations, operations * 1000 / (double)clock.wall_ns);
  return 0;
}
