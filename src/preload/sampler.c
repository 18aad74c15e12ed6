/* SPDX-License-Identifier: MIT
 * sampler.c - see sampler.h. */
#include "sampler.h"

#include <time.h>

#include "mathfn.h"
#include "sys.h"

enum { WEIGHT_STEPS = 1024, EPOCH_BEFORE_START = 1 };

/* Published together: the rate is stored before the epoch that announces it. */
static uint64_t rate_bytes; /* atomic */
static uint64_t rate_last;  /* atomic; never 0 again */
static uint64_t rate_max;   /* atomic */
static uint64_t seed_counter;
static uint64_t fixed_seed; /* HEAPPROF_TEST_SEED; 0: none */

uint64_t hp_sampler_rate(void) { return hp_load_acquire(&rate_bytes); }

uint64_t hp_sampler_rate_last(void) { return hp_load_acquire(&rate_last); }

bool hp_sampler_was_on(void) { return hp_sampler_rate_last() != 0; }

uint64_t hp_sampler_rate_max(void) { return hp_load_acquire(&rate_max); }

void hp_sampler_set_rate(uint64_t bytes) {
  if (bytes != 0) hp_store_release(&rate_last, bytes);
  uint64_t worth = bytes == 0 ? UINT64_MAX : bytes;
  if (worth > hp_load_relaxed(&rate_max)) hp_store_release(&rate_max, worth);
  hp_store_release(&rate_bytes, bytes);
  __atomic_fetch_add(&hp_hot.rate_epoch, 1, __ATOMIC_RELEASE);
}

void hp_sampler_test_seed(uint64_t seed) { fixed_seed = seed; }

void hp_sampler_reseed(void) {
  uint64_t count = hp_add_relaxed(&seed_counter, 1);
  uint64_t seed;
  hp_thread.rng.state = hp_hash_mix(count + 1); /* not 0: the clock may be the program's own, and allocate */
  if (fixed_seed != 0) {
    seed = hp_hash_mix(fixed_seed + count * HP_HASH_MULTIPLIER);
  } else {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* the vdso's: no system call */
    seed = hp_hash_mix((uint64_t)now.tv_nsec + ((uint64_t)now.tv_sec << 30)) ^ hp_hash_mix((uintptr_t)&hp_thread) ^
           hp_hash_mix(count + 1);
  }
  hp_thread.rng.state = seed;
  hp_sampler_forget_gap();
}

uint64_t hp_sampler_draw_gap(struct hp_rng *rng, uint64_t rate) {
  if (rate == 0) return UINT64_MAX;
  if (rate == 1) return 0; /* exact: the next byte is a sample */
  double gap = -hp_math_log(hp_rng_unit(rng)) * (double)rate;
  return (uint64_t)gap; /* at most 37 R: below 2^46 */
}

double hp_sampler_weight(uint64_t size, uint64_t rate) {
  if (rate <= 1) return 1.0;
  double x = (double)(size == 0 ? 1 : size) / (double)rate;
  if (x > 40.0) return 1.0; /* e^-40 is below the last bit of 1 */
  return -1.0 / hp_math_expm1(-x);
}

float hp_sampler_quantise(double weight, struct hp_rng *rng) {
  double steps = weight * WEIGHT_STEPS;
  if (weight == 1.0 || steps >= 0x1p24) return (float)weight; /* a float's own step is finer than 1/2^24 of it */
  uint64_t whole = (uint64_t)steps;
  if (hp_rng_unit(rng) <= steps - (double)whole) whole++;
  return (float)whole / WEIGHT_STEPS;
}

HP_COLD float hp_sampler_decide_slow(size_t size) {
  uint64_t epoch = hp_load_acquire(&hp_hot.rate_epoch);
  uint64_t rate = hp_load_acquire(&rate_bytes);
  uint64_t n = size + (size == 0);
  if (HP_UNLIKELY(epoch == EPOCH_BEFORE_START)) return 0;
  if (hp_thread.rate_epoch != epoch) {
    /* At rate 0 no clock is read: in a sanitizer's program it is the sanitizer's, and not yet there. */
    if (rate != 0 && hp_thread.rng.state == 0) hp_sampler_reseed();
    hp_thread.rate_epoch = epoch;
    hp_thread.bytes_left = hp_sampler_draw_gap(&hp_thread.rng, rate);
  }
  if (n <= hp_thread.bytes_left) {
    if (hp_thread.bytes_left != UINT64_MAX) hp_thread.bytes_left -= n;
    return 0;
  }
  hp_thread.bytes_left = hp_sampler_draw_gap(&hp_thread.rng, rate);
  if (rate == 0) return 0;
  return hp_sampler_quantise(hp_sampler_weight(size, rate), &hp_thread.rng);
}
