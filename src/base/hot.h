/* SPDX-License-Identifier: MIT
 * hot.h - the one cache line that every malloc and free reads: where the real functions are, and the two words that say
 * "nothing to do here". Read-mostly: written at start-up, on a change of rate, and when the filter is replaced.
 *
 * malloc      what an unsampled malloc ends in: real_malloc, or, once the rate has changed while the program ran, a twin that
 *             first looks at rate_epoch (preload/sampled_path): nobody else pays for that look.
 * filter      where a table of byte counters begins, an address whose low six bits are also the shift that turns a hashed
 *             address into an index of it: one load gives both, so that no reader sees the one without the other, and
 *             nothing has to be masked away. A zero counter says: no sampled block lives at an address of this hash
 *             (record/live_filter.c owns it).
 * rate_epoch  changes with every change of rate; a thread that finds another one draws a new gap (preload/sampler). */
#ifndef HP_HOT_H
#define HP_HOT_H

#include "compiler.h"
#include "hash.h"

struct hp_hot {
  void *(*malloc)(size_t); /* atomic */
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
  return HP_UNLIKELY(hp_is_byte_set((const uint8_t *)filter, hp_address_hash(ptr) >> (filter & 63)));
}

/* Of a table of 2^bits counters that has memory from `memory` on, which is aligned to 64 and HP_FILTER_SLACK longer: where it
 * begins. */
enum { HP_FILTER_SLACK = 64 };
static inline uint8_t *hp_filter_place(void *memory, unsigned bits) { return (uint8_t *)memory + (64 - bits); }

#endif
