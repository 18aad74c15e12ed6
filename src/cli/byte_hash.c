/* SPDX-License-Identifier: MIT
 * byte_hash.c - see byte_hash.h. Eight bytes at a time.
 */
#include "byte_hash.h"

#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

/* One for the whole run of the command, whichever thread comes first: serve answers several requests at once. */
static uint64_t seed_of_run(void) {
  static uint64_t seed;
  uint64_t known = __atomic_load_n(&seed, __ATOMIC_RELAXED), drawn;
  if (known != 0) return known;
  if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != (ssize_t)sizeof drawn || drawn == 0) drawn = 0x9e3779b97f4a7c15u;
  return __atomic_compare_exchange_n(&seed, &known, drawn, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ? drawn : known;
}

uint64_t hp_byte_hash(const void *data, size_t length_bytes) {
  const unsigned char *byte = data;
  uint64_t hash = seed_of_run() ^ length_bytes;
  for (; length_bytes >= 8; length_bytes -= 8, byte += 8) {
    uint64_t word;
    memcpy(&word, byte, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  for (; length_bytes > 0; length_bytes--, byte++) hash = (hash ^ *byte) * 0x100000001b3u;
  hash ^= hash >> 33;
  hash *= 0xc4ceb9fe1a85ec53u;
  return hash ^ hash >> 29;
}
