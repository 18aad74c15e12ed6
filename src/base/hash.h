/* SPDX-License-Identifier: MIT
 * hash.h - pure hash functions. Async-signal-safe. */
#ifndef HP_HASH_H
#define HP_HASH_H

#include "compiler.h"

/* Multiplier of addresses; the high bits of the product are the good ones. Not the golden ratio's: that one maps a regular
 * heap onto itself. Among 10^6 blocks at a stride of 32, 48, 64 or 80 bytes, a filter one eighth full says "maybe" to 50,
 * 25, 25, 30 % of their never-sampled neighbours with it, and to 0, 0, 0, 4 % with this. */
#define HP_HASH_MULTIPLIER 0xD6E8FEB86659FD93ull

/* A well-mixed 64-bit value of x (the finaliser of MurmurHash3). */
static inline uint64_t hp_hash_mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

/* Sum of n words, each times an odd factor of its place, counted from the last of all: `behind` more words follow these.
 * So a permutation differs, the products are independent of each other (no chain of multiplications), and the sum of a tail
 * that many have in common can be kept. */
static inline uint64_t hp_hash_sum(const uintptr_t *words, size_t n, size_t behind) {
  const uint64_t step = 0x632BE59BD9B4E01Aull; /* even: the factors stay odd */
  uint64_t sum = 0;
  uint64_t factor = HP_HASH_MULTIPLIER + (n + behind) * step;
  for (size_t i = 0; i < n; i++) {
    factor -= step;
    sum += words[i] * factor;
  }
  return sum;
}

/* The hash of n words from the sum of all of them. */
static inline uint64_t hp_hash_of_sum(uint64_t sum, size_t n, uint64_t seed) {
  return hp_hash_mix(sum + (seed ^ (n * HP_HASH_MULTIPLIER)));
}

static inline uint64_t hp_hash_words(const uintptr_t *words, size_t n, uint64_t seed) {
  return hp_hash_of_sum(hp_hash_sum(words, n, 0), n, seed);
}

/* The last `count` of some words, and their sum. */
struct hp_hash_tail {
  size_t count;
  uint64_t sum;
};

#endif
