/* SPDX-License-Identifier: MIT
 * rng.h - a small random generator, one state a thread, seeded by its owner (sampler.h). Pure; async-signal-safe.
 * splitmix64: one addition of state, full period 2^64, any seed is good. */
#ifndef HP_RNG_H
#define HP_RNG_H

#include "compiler.h"

struct hp_rng {
  uint64_t state;
};

static inline uint64_t hp_rng_next(struct hp_rng *rng) {
  uint64_t z = (rng->state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

/* Uniform in (0, 1]: never 0, so that its logarithm is finite. 53 bits. */
static inline double hp_rng_unit(struct hp_rng *rng) { return (double)((hp_rng_next(rng) >> 11) + 1) * 0x1p-53; }

#endif
