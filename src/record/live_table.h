/* SPDX-License-Identifier: MIT
 * live_table.h - which sampled blocks are still allocated, and what each stands for; and the filter that lets free() pass
 * every other block without asking (hot.h).
 *
 * Invariants  an address appears at most once; a record's weight is not 0.
 * Callers     program threads insert and remove, in their own section; a dump with labels walks.
 * Locks       one a shard, held for one probe; the private heap's inside it when a shard grows. Replacing
 *             the filter takes all of them in order, and maps memory.
 * Signals     not for handlers, but hp_live_table_walk when no shard's lock can be held by the interrupted thread.
 * Memory      from the private heap; the filter is mapped. At the ceiling an insert is declined, the caller counts it.
 * Fork        the child keeps it: it really holds that memory.
 * Cost        28 bytes a record, 5 to 8 of index, 8 to 32 of filter (live_filter.c: capacity_of; more a record below some
 *             60 000, where the filter is 1 MiB or less). Insert and remove: one lock, three cache lines each. */
#ifndef HP_LIVE_TABLE_H
#define HP_LIVE_TABLE_H

#include "compiler.h"

struct hp_live_record {
  uintptr_t address;
  uint64_t size_thread; /* requested bytes << 16 | id of the allocating thread's name */
  float weight;         /* blocks this sample stands for; a multiple of 1/1024 below 2^14 (sampler.h) */
  uint32_t stack_id;
  uint32_t time_seconds; /* hp_labels_now_seconds() of the allocation; 0 without the age label */
};

static inline uint64_t hp_live_record_size(const struct hp_live_record *r) { return r->size_thread >> 16; }

enum hp_live_insert {
  HP_LIVE_INSERTED = 1, /* without it: declined, the table is full */
  HP_LIVE_REPLACED = 2, /* a record stood under this address: a free was missed; it is in *out_missed, taken out */
};

/* Any thread in its own section. Returns a set of enum hp_live_insert. */
unsigned hp_live_table_insert(const struct hp_live_record *record, struct hp_live_record *out_missed);
/* Take the record of this address out, into *out. False: there is none (and nothing changed). */
bool hp_live_table_remove(uintptr_t address, struct hp_live_record *out);

/* A record that was removed goes back as it was (realloc failed). False: memory ran out in between, there is no record. */
bool hp_live_table_put_back(const struct hp_live_record *record);

/* An insert of this address is near: bring in what it will touch. Own section, no lock. */
void hp_live_table_expect(uintptr_t address);

/* Sums over the samples for the error bars: the variance of each total (docs/accuracy.md), and how many there were. */
struct hp_live_moments {
  uint64_t samples; /* all that were offered to insert */
  double alloc_objects_variance, alloc_bytes_variance;
  double inuse_objects_variance, inuse_bytes_variance;
};
/* Async-signal-safe. */
void hp_live_table_moments(struct hp_live_moments *out);

/* Number of records. Async-signal-safe. */
uint64_t hp_live_table_count(void);

/* Calls visit for each record, a shard's lock held: visit must not come back here. */
void hp_live_table_walk(void (*visit)(void *context, const struct hp_live_record *record), void *context);

/* Give back what outgrown filters held once no reader can be inside them, and replace one that is far too large: each dump does.
 * now_seconds: CLOCK_MONOTONIC. Takes the shards' locks, else async-signal-safe. */
void hp_live_table_reclaim(uint64_t now_seconds);

/* Tests: decline above so many records in all (0: no limit but memory). */
void hp_live_table_test_limit(uint64_t records);

/* Around fork: every shard, in index order. */
void hp_live_table_lock_all(void);
void hp_live_table_unlock_all(void);

#endif
