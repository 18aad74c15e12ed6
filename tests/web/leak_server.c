/* SPDX-License-Identifier: MIT
 * leak_server.c - a server without a network: requests that allocate and free among a large working set, for the tests of
 * trend.
 *
 *   leak_server SECONDS LEAK_EVERY SEED     LEAK_EVERY 0: no leak; 1000: 1 KiB is lost at each 1000th request
 *
 * SEED is not 0: the random numbers are its, under the testing library those of sampling too. The seconds are of a clock of its own,
 * 40 000 requests each, which the library reads as well. So a run is the same whatever the machine does.
 *
 * The working set is 100 000 blocks of 16 bytes to 16 KiB (200 MB) held by 40 call paths; each request replaces a few at
 * random, so lives are exponential; a cache fills in the first fifth of the time and then stays.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heapprof_testing.h"

#pragma weak heapprof_test_seed

#define SLOTS 100000
#define CACHE_BYTES 2048

#define SITE(n)                                                  \
  static __attribute__((noinline)) void *site_##n(size_t size) { \
    void *block = malloc(size);                                  \
    if (block != NULL) memset(block, n, size < 64 ? size : 64);  \
    return block;                                                \
  }
SITE(0)
SITE(1) SITE(2) SITE(3) SITE(4) SITE(5) SITE(6) SITE(7) SITE(8) SITE(9) static void *(*const sites[])(size_t) = {
    site_0, site_1, site_2, site_3, site_4, site_5, site_6, site_7, site_8, site_9};

static __attribute__((noinline)) void *parse_request(unsigned site, size_t size) { return sites[site](size); }
static __attribute__((noinline)) void *render_page(unsigned site, size_t size) { return sites[site](size); }
static __attribute__((noinline)) void *query_store(unsigned site, size_t size) { return sites[site](size); }
static __attribute__((noinline)) void *encode_reply(unsigned site, size_t size) { return sites[site](size); }
static void *(*const paths[])(unsigned, size_t) = {parse_request, render_page, query_store, encode_reply};

static void *slots[SLOTS], *lost_block;
static uint64_t state = 88172645463325252u;

static uint64_t random_next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static size_t random_size(void) { return (size_t)16 << random_next() % 10 << (random_next() % 3 == 0); }

static void replace(size_t slot) {
  free(slots[slot]);
  slots[slot] = paths[slot % 4](slot / 4 % 10, random_size() + slot % 97);
}

static __attribute__((noinline)) void *remember_session(void) {
  void *block = malloc(1024);
  if (block != NULL) memset(block, 7, 1024);
  return block;
}

static __attribute__((noinline)) void *fill_cache(void) {
  void *block = malloc(CACHE_BYTES);
  if (block != NULL) memset(block, 9, CACHE_BYTES);
  return block;
}

/* volatile: the compiler takes it that malloc looks at no clock. */
static volatile int64_t elapsed_nanos = INT64_C(70000000000);

int clock_gettime(clockid_t clock, struct timespec *out) {
  const int64_t second = 1000000000;
  out->tv_sec = elapsed_nanos / second + (clock == CLOCK_REALTIME ? 1700000000 : 0);
  out->tv_nsec = elapsed_nanos % second;
  return 0;
}

int main(int argc, char **argv) {
  long ticks = argc > 1 ? (long)(atof(argv[1]) * 40) : 40;
  if (argc > 3) state += strtoull(argv[3], NULL, 10) * 0x9E3779B97F4A7C15u;
  if (argc > 3 && heapprof_test_seed != NULL) heapprof_test_seed(strtoull(argv[3], NULL, 10));
  unsigned long long leak_every = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, requests = 0;
  for (size_t i = 0; i < SLOTS; i++) replace(i);
  for (long tick = 0; tick < ticks; tick++) {
    for (int i = 0; i < 1000; i++, requests++, elapsed_nanos += 25000) {
      for (int k = 0; k < 3; k++) replace(random_next() % SLOTS);
      if (leak_every != 0 && requests % leak_every == 0) lost_block = remember_session();
      if (tick < ticks / 5 && requests % 50 == 0) lost_block = fill_cache();
    }
  }
  printf("%llu requests\n", requests);
  return lost_block == NULL && leak_every != 0;
}
