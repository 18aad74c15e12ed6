/* SPDX-License-Identifier: MIT
 * recorder.h - the one door to the books: a sample goes in, a free takes it out; both tables are kept in step, losses
 * counted.
 *
 * Invariants  a sample's alloc side is always counted, on its own stack or a pseudo entry; its in-use side is counted when
 *             it has a live record. The record goes in after the real allocation and before the caller has the pointer, and
 *             comes out before the real free.
 * Callers     preload/sampled_path, inside the profiler's own section.
 * Locks       those of the two tables, never both. */
#ifndef HP_RECORDER_H
#define HP_RECORDER_H

#include "compiler.h"
#include "live_table.h"
#include "hash.h"
#include "memo.h"
#include "stack_table.h"

struct hp_sample {
  uintptr_t address;
  uint64_t size; /* requested bytes; counted as HP_RECORD_SIZE_MAX at most */
  float weight;
  const uintptr_t *pcs; /* return addresses, leaf first */
  uint32_t depth;
  bool is_truncated;        /* the stack was deeper than the limit */
  struct hp_hash_tail tail; /* of pcs; count 0: not known */
  struct hp_memo *memo;     /* NULL, or what this folder noted when it last saw these very pcs: the entry, by its label */
};

#define HP_RECORD_SIZE_MAX (((uint64_t)1 << 48) - 1)

/* Any thread in its own section; the caller of the allocator does not have the pointer yet. Never fails: what finds no room is
 * counted in hp_recorder_losses. */
void hp_recorder_add(const struct hp_sample *sample);
/* A block at this address is about to be added: brings in the memory that will be written. */
void hp_recorder_expect(uintptr_t address);

/* Take out the record of this address, before the real free or realloc. False: there is none. The in-use side still counts
 * it until hp_recorder_count_free(); hp_recorder_put_back() undoes the taking (at the ceiling: counts a free and a loss). */
bool hp_recorder_take(uintptr_t address, struct hp_live_record *out);
void hp_recorder_count_free(const struct hp_live_record *record);
void hp_recorder_put_back(const struct hp_live_record *record);

/* Which labels split the rows (bits of enum hp_recorder_labels), set before the first sample. */
enum hp_recorder_labels { HP_LABEL_SIZE = 1, HP_LABEL_THREAD = 2, HP_LABEL_AGE = 4 };
void hp_recorder_set_labels(unsigned labels);
unsigned hp_recorder_labels(void);

/* Keep the running total of bytes in use, for the growth trigger: one shared counter, so only when asked for. At start-up. */
void hp_recorder_track_inuse(bool on);
/* Bytes in use by that counter. Async-signal-safe. */
uint64_t hp_recorder_inuse_bytes(void);

/* Counters since the start; atomic, any thread, async-signal-safe. */
struct hp_recorder_losses {
  uint64_t live_table_full;
  uint64_t stack_table_full;
  uint64_t unwind_failed;
  uint64_t truncated;
  uint64_t reentrant;
  uint64_t missed_frees;
};
extern struct hp_recorder_losses hp_recorder_losses;

/* What a sample stands for, in the stack table's fixed point. */
static inline uint64_t hp_fixed_objects(float weight) {
  return (uint64_t)((double)weight * (1 << HP_OBJECT_FRACTION_BITS) + 0.5);
}
static inline uint64_t hp_fixed_bytes(float weight, uint64_t size) {
  unsigned __int128 product = (unsigned __int128)hp_fixed_objects(weight) * size;
  product += 1u << (HP_OBJECT_FRACTION_BITS - HP_BYTE_FRACTION_BITS - 1); /* to the nearest */
  product >>= HP_OBJECT_FRACTION_BITS - HP_BYTE_FRACTION_BITS;
  return product > UINT64_MAX ? UINT64_MAX : (uint64_t)product;
}

#endif
