/* SPDX-License-Identifier: MIT
 * behaviour.h - what the programs of the behaviours share. A program runs a scenario under the testing build, checks what it
 * can see itself (stats, hooks, errno) and writes profiles into the folder argv[1]; run.py then looks at those. */
#ifndef HP_BEHAVIOUR_H
#define HP_BEHAVIOUR_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heapprof.h"
#include "heapprof_testing.h"

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

/* No assert(): the scenario must not allocate where it did not mean to. */
#define CHECK(condition, ...)                                    \
  do {                                                           \
    if (!(condition)) {                                          \
      dprintf(1, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      dprintf(1, __VA_ARGS__);                                   \
      dprintf(1, "\n");                                          \
      _exit(1);                                                  \
    }                                                            \
  } while (0)

#define CHECK_EQUAL(got, want)                                    \
  do {                                                            \
    long long got_ = (long long)(got), want_ = (long long)(want); \
    CHECK(got_ == want_, "got %lld, want %lld", got_, want_);     \
  } while (0)

/* HEAPPROF_LONG=1: the full size of a scenario instead of the one for every day. */
static inline long scaled(long everyday, long full) {
  const char *is_long = getenv("HEAPPROF_LONG");
  return is_long != NULL && is_long[0] == '1' ? full : everyday;
}

static inline struct heapprof_stats stats_now(void) {
  struct heapprof_stats s = {0};
  int result = heapprof_stats(&s);
  CHECK(result == 0, "heapprof_stats: %d (run under the testing build)", result);
  return s;
}

/* heapprof_dump() to FOLDER/NAME.pb.gz */
static inline int dump_to(const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.pb.gz", folder, name);
  return heapprof_dump(path);
}

static inline void wait_ms(long ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static inline void run_threads(pthread_t *threads, int n, void *(*body)(void *)) {
  for (int i = 0; i < n; i++) {
    int failed = pthread_create(&threads[i], NULL, body, (void *)(intptr_t)i);
    CHECK(failed == 0, "pthread_create: %d", failed);
  }
}
static inline void join_threads(pthread_t *threads, int n) {
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

/* A dump that stops after reading the books until it is let go (heapprof_test_pause_dump(slow_dump)). */
static int dump_is_paused, dump_may_go; /* atomic */

static inline void slow_dump(void) {
  __atomic_store_n(&dump_is_paused, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&dump_may_go, __ATOMIC_ACQUIRE) == 0) wait_ms(1);
  __atomic_store_n(&dump_is_paused, 0, __ATOMIC_RELEASE);
}
static inline void wait_for_paused_dump(void) {
  while (__atomic_load_n(&dump_is_paused, __ATOMIC_ACQUIRE) == 0) wait_ms(1);
}
static inline void let_dump_go(void) { __atomic_store_n(&dump_may_go, 1, __ATOMIC_RELEASE); }

struct dump_call {
  const char *folder, *name;
  int result;
};
static inline void *dump_in_thread(void *argument) {
  struct dump_call *call = argument;
  call->result = dump_to(call->folder, call->name);
  return NULL;
}

/* A random number of its own state. */
static inline uint64_t random_next(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

#endif
