/* SPDX-License-Identifier: MIT
 * repeats.h - the stacks that a thread samples again and again: a program allocates at a few places in a loop, and each of them
 * has the same stack as the last time it was reached with this stack pointer.
 *
 *   (pc, sp) of the start --hash--> entry: slots (remembered.h) of the whole walk, its frames, a memo
 *
 * If pc and sp are those of the entry, every slot holds what it held, and so does the frame register if any step uses it, then
 * the whole stack is the entry's, exactly, for the reason given in remembered.h.
 *
 * Filled from a walk that was recorded whole; which walks are worth recording, each entry judges by what came of the last ones.
 * Threads     and signals: as the record (remembered.h), to which it belongs.
 * Memory      private heap, 38 KiB for each of at most HP_REPEATS_THREADS_MAX threads, from a thread's
 *             HP_REPEATS_FIRST_WALK-th walk on; the others go without. */
#ifndef HP_REPEATS_H
#define HP_REPEATS_H

#include "compiler.h"
#include "hash.h"
#include "memo.h"
#include "stack_bounds.h"
#include "unwinder.h"

enum {
  HP_REPEATS_BITS = 4,
  HP_REPEATS_ENTRIES = 1 << HP_REPEATS_BITS,
  HP_REPEATS_FRAMES_MAX = 96, /* longer stacks are left to the record */
  HP_REPEATS_SLOTS_MAX = 96,
  HP_REPEATS_MISSES_MAX = 64,
  HP_REPEATS_THREADS_MAX = 64,
  HP_REPEATS_FIRST_WALK = 64,
};

/* A word on the stack, and what it held. */
struct hp_stack_slot {
  const uintptr_t *at;
  uintptr_t held;
};

struct hp_repeat {
  uintptr_t pc; /* 0: empty */
  uintptr_t sp;
  uintptr_t fp;
  bool is_fp_live; /* does a step use it? */
  uint32_t generation;
  uint32_t slot_count;
  uint32_t frame_count;
  uint32_t hits;       /* in a row */
  uint32_t misses;     /* since the last hit */
  uint32_t misses_max; /* so many bring about a recording; doubles until as many hits have come in a row */
  struct hp_memo memo;
  uint64_t sum; /* hp_hash_sum of the frames */
  struct hp_stack_slot slots[HP_REPEATS_SLOTS_MAX];
  uintptr_t frames[HP_REPEATS_FRAMES_MAX];
};

struct hp_repeats {
  struct hp_repeat entries[HP_REPEATS_ENTRIES];
};

/* NULL: no memory, or enough threads have one. */
struct hp_repeats *hp_repeats_create(void);

/* The entry for a walk that begins here. */
static inline struct hp_repeat *hp_repeats_find(struct hp_repeats *repeats, const struct hp_frame_start *start) {
  return &repeats->entries[(start->pc + 3 * start->sp) * HP_HASH_MULTIPLIER >> (64 - HP_REPEATS_BITS)];
}

/* Does each slot hold what it held? */
HP_READS_STACK static inline bool hp_stack_slots_hold(const struct hp_stack_slot *slot, const struct hp_stack_slot *end) {
  for (; end - slot >= 4; slot += 4) { /* four at a time: loads that wait for nothing, one branch */
    uintptr_t difference = (*slot[0].at ^ slot[0].held) | (*slot[1].at ^ slot[1].held) | (*slot[2].at ^ slot[2].held) |
                           (*slot[3].at ^ slot[3].held);
    if (difference != 0) return false;
  }
  for (; slot != end; slot++) {
    if (*slot->at != slot->held) return false;
  }
  return true;
}

/* Is it that stack again, and is there room for `max` frames? Counts. */
HP_READS_STACK static inline bool hp_repeat_holds(struct hp_repeat *entry, const struct hp_frame_start *start,
                                                  uint32_t generation, size_t max) {
  if (entry->pc == start->pc && entry->sp == start->sp && entry->generation == generation && entry->frame_count <= max &&
      (!entry->is_fp_live || entry->fp == start->fp) &&
      hp_stack_slots_hold(entry->slots, entry->slots + entry->slot_count)) {
    entry->misses = 0;
    if (++entry->hits >= entry->misses_max) entry->misses_max = 1;
    return true;
  }
  entry->hits = 0;
  entry->misses++;
  return false;
}

/* After a miss: is the walk worth recording for this entry? */
static inline bool hp_repeat_is_due(const struct hp_repeat *entry) { return entry->misses >= entry->misses_max; }

struct hp_remembered;
/* The walk just recorded, if it is whole and not too long; else the entry stays, and asks less often. */
void hp_repeat_fill(struct hp_repeat *entry, const struct hp_remembered *record);

#endif
