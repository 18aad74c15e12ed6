/* SPDX-License-Identifier: MIT
 * hash.h - pure hash functions. Async-signal-safe. */
#ifndef HP_HASH_H
#define HP_HASH_H

#include "compiler.h"

/* 2^64 / golden ratio: the multiplier of Fibonacci hashing; the high bits of the product are the good ones. */
#define HP_HASH_MULTIPLIER 0x9E3779B97F4A7C15ull

/* A well-mixed 64-bit value of x (the finaliser of MurmurHash3). */
static inline uint64_t hp_hash_mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

/* Hash of n words. Each word is multiplied by an odd factor of its place, so that a permutation differs and the products
 * are independent of each other (no chain of multiplications). */
static inline uint64_t hp_hash_words(const uintptr_t *words, size_t n, uint64_t seed) {
  uint64_t sum = seed ^ (n * HP_HASH_MULTIPLIER);
  uint64_t factor = HP_HASH_MULTIPLIER;
  for (size_t i = 0; i < n; i++) {
    uint64_t w = words[i];
    sum += (w ^ (w >> 29)) * factor;
    factor += 0x632BE59BD9B4E01Aull; /* even step: stays odd */
  }
  return hp_hash_mix(sum);
}

#endif
