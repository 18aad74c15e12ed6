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

/* Hash of n words: each times an odd factor of its place, so that a permutation differs and the products are independent of
 * each other (no chain of multiplications); mixed once at the end. */
static inline uint64_t hp_hash_words(const uintptr_t *words, size_t n, uint64_t seed) {
  uint64_t sum = seed ^ (n * HP_HASH_MULTIPLIER);
  uint64_t factor = HP_HASH_MULTIPLIER;
  for (size_t i = 0; i < n; i++) {
    sum += words[i] * factor;
    factor += 0x632BE59BD9B4E01Aull; /* even step: stays odd */
  }
  return hp_hash_mix(sum);
}

#endif
