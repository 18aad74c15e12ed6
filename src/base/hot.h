/* SPDX-License-Identifier: MIT
 * hot.h - the one cache line that every malloc and free reads: where the real functions are, and the two words that say
 * "nothing to do here". Read-mostly: written at start-up, on a change of rate, and when the filter is replaced.
 *
 * filter      base address of a table of byte counters (aligned to 64) plus the shift that turns a hashed address into an
 *             index of it, in the low six bits: one load gives both, so that no reader sees the one without the other.
 *             A zero counter says: no sampled block lives at an address of this hash (record/live_table.c owns it).
 * rate_epoch  changes with every change of rate; a thread that finds another one draws a new gap (preload/sampler). */
#ifndef HP_HOT_H
#define HP_HOT_H

#include "compiler.h"
#include "hash.h"

struct hp_hot {
  void *(*real_malloc)(size_t);
  void (*real_free)(void *);
  void *(*real_calloc)(size_t, size_t);
  void *(*real_realloc)(void *, size_t);
  uintptr_t filter;    /* atomic */
  uint64_t rate_epoch; /* atomic */
} __attribute__((aligned(HP_CACHE_LINE)));

extern struct hp_hot hp_hot;

/* The filter and the live table (record/live_table.c) must agree on it. */
static inline uint64_t hp_address_hash(const void *ptr) { return (uintptr_t)ptr * HP_HASH_MULTIPLIER; }

/* May a sampled block live at ptr? One load of the line above, one of the filter. False is certain: the inserter of ptr
 * published the counter before its caller had the pointer. Any thread, any context. */
static inline bool hp_filter_may_hold(const void *ptr) {
  uintptr_t filter = hp_load_relaxed(&hp_hot.filter);
  const uint8_t *counters = (const uint8_t *)(filter & ~(uintptr_t)63);
  return HP_UNLIKELY(hp_is_byte_set(&counters[hp_address_hash(ptr) >> (filter & 63)]));
}

#endif
