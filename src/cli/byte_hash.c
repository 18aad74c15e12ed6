/* SPDX-License-Identifier: MIT
 * byte_hash.c - see byte_hash.h. Eight bytes at a time.
 */
#include "byte_hash.h"

#include <string.h>
#include <sys/random.h>

uint64_t hp_byte_hash(const void *data, size_t length_bytes) {
  static uint64_t seed;
  if (seed == 0 && getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) seed = 0x9e3779b97f4a7c15u;
  const unsigned char *byte = data;
  uint64_t hash = seed ^ length_bytes;
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
