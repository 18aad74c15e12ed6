/* SPDX-License-Identifier: MIT
 * live_filter.h - the counters behind hp_hot.filter (hot.h): how many sampled blocks live at addresses of each hash, so that
 * free() passes every other block without asking.
 *
 * Invariants  the counter of an address is not 0 while its record exists: counted up before the inserter's caller has the
 *             pointer, down after the record is gone. A counter that reached 255 stays.
 *             The index starts with the bits that choose the shard (live_table.c), so that all blocks that share a counter
 *             share a shard.
 * Locks       a counter is written under its shard's lock, by plain stores; the rest with all shards locked.
 * Callers     live_table.c only.
 * Signals     not for handlers.
 * Memory      8 to 32 bytes a record (more below some 60 000), raw mappings against the ceiling. */
#ifndef HP_LIVE_FILTER_H
#define HP_LIVE_FILTER_H

#include "hot.h"

struct hp_live_filter {
  uint8_t *counters; /* atomic; in memory; NULL: none yet, hp_hot has the initial zeros */
  unsigned bits;     /* atomic; 2^bits counters */
  void *memory;
};
extern struct hp_live_filter hp_live_filter;

enum { HP_LIVE_COUNTER_STUCK = 255 };

static inline bool hp_live_filter_exists(void) { return hp_load_relaxed(&hp_live_filter.counters) != NULL; }

static inline uint8_t *hp_live_filter_counter(uint64_t hash) {
  return &hp_live_filter.counters[hash >> (64 - hp_live_filter.bits)];
}
/* False: no record has this hash, that is certain. */
static inline bool hp_live_filter_is_counted(uint64_t hash) { return *hp_live_filter_counter(hash) != 0; }

static inline void hp_live_filter_count_up(uint64_t hash) {
  uint8_t *counter = hp_live_filter_counter(hash);
  if (*counter != HP_LIVE_COUNTER_STUCK) hp_store_relaxed(counter, (uint8_t)(*counter + 1));
}
static inline void hp_live_filter_count_down(uint64_t hash) {
  uint8_t *counter = hp_live_filter_counter(hash);
  if (*counter != HP_LIVE_COUNTER_STUCK) hp_store_relaxed(counter, (uint8_t)(*counter - 1));
}

/* Does it hold more records than it should? Any thread. */
bool hp_live_filter_is_too_full(uint64_t records);

/* Should it be replaced for so many records: too full, or far too empty? Any thread. */
bool hp_live_filter_is_misfit(uint64_t records);

/* All shards locked. Makes it fit so many records, if it does not: count_all counts up every record there is. Failing (no
 * memory, the ceiling) leaves the old one: fuller, still true. */
void hp_live_filter_fit(uint64_t records, void (*count_all)(void));

/* Memory of a filter that was replaced. */
struct hp_live_retired {
  void *at;
  size_t bytes;
  uint64_t since_seconds; /* CLOCK_MONOTONIC */
};
enum { HP_LIVE_RETIRED_MAX = 64 };

/* How many were replaced and still have their memory. Any thread. */
unsigned hp_live_filter_retired(void);
/* All shards locked. Takes those off the list that were replaced ten seconds ago, into out[HP_LIVE_RETIRED_MAX]; their number.
 * now_seconds: CLOCK_MONOTONIC. */
unsigned hp_live_filter_take_retired(uint64_t now_seconds, struct hp_live_retired *out);
/* Gives them back. No lock needed. */
void hp_live_filter_give_back(const struct hp_live_retired *retired, unsigned count);

#endif
