/* SPDX-License-Identifier: MIT
 * remembered.h - each thread's last recorded walk, so that the next one need not walk what has not changed.
 *
 * A walk is a function of the state at a frame (pc, sp, frame register), of the rules, and of the words the frames above
 * load: return addresses and saved frame registers. If a frame's state equals a remembered one and a slot still holds what
 * it held, the next frame's state is the remembered one, exactly. Comparing slots is independent loads; walking is a chain
 * of them.
 *
 *   entry i: state of a frame (key, sp, fp), and the step from it: cfa, fp_words
 *   linked to entry i + 1 when that one's sp is the cfa; entries ascend by sp; after the last one stands sp = UINTPTR_MAX
 *
 * From whole_from on every entry is linked to the next, up to the outermost frame. Of those links the slots stand in one list
 * with what they held, so that "all the rest is as it was" is one pass over it; the frames it reports are copied. A frame
 * register that is loaded anew before any step uses it (code without frame pointers keeps anything there) need not be the
 * same, nor the slot it came from.
 *
 * Invariants  all entries lie on the thread's own stack (stack_bounds.h): between a live sp and its end everything is mapped,
 *             so slots are read unchecked. An entry whose step was not a plain one has cfa 0 and links to nothing. A record is
 *             good for one generation of the rules; it is neither made nor used while an unload is under way.
 * Threads     a record belongs to the thread whose thread pointer it is filed under: two live threads never share one. A thread
 *             that reuses a dead one's thread pointer takes over its record's memory, not what is in it: that thread may have been in
 *             the middle of it when it came to its end, or when a fork left it behind.
 * Memory      private heap, 15 KiB for each of at most HP_REMEMBERED_THREADS_MAX thread pointers; more threads go without.
 * Signals     not re-entered (callers' section).
 * Fork        the child's thread has the same thread pointer. */
#ifndef HP_REMEMBERED_H
#define HP_REMEMBERED_H

#include "compiler.h"
#include "hash.h"
#include "memo.h"
#include "repeats.h"
#include "stack_bounds.h"

enum {
  HP_REMEMBERED_FRAMES_MAX = 175, /* the default depth is 128; deeper stacks are remembered up to here */
  HP_REMEMBERED_THREADS_MAX = 256,
  HP_REMEMBERED_BAD_WALKS_MAX = 64,
  HP_REMEMBERED_GOOD_WALKS = 8,
};

struct hp_remembered_frame {
  uintptr_t key;
  uintptr_t sp;
  uintptr_t fp;
  uint32_t cfa_distance; /* of the next frame's sp from this one's; 0: no link */
  uint16_t fp_words;     /* 0: the step leaves fp alone */
  uint8_t is_reported;   /* 0: a frame of heapprof's own, or none at all (address 0 at the root) */
  uint8_t is_end : 1;    /* the outermost frame: the walk was complete here */
  uint8_t uses_fp : 1;   /* the step's CFA is one of fp */
};

struct hp_remembered {
  uintptr_t owner; /* thread pointer */
  uint32_t generation;
  uint32_t count;
  uint32_t whole_from; /* entry; count: none, the walk had no known end or its last step was no plain one */
  uint32_t slot_count;
  uint32_t reported_count;
  uint32_t good_walks;        /* in a row: half or more was taken over in one go */
  uint32_t bad_walks;         /* in a row: all others */
  uint32_t bad_walks_max;     /* so many bring about the next recording; doubles until eight times as many have been good */
  bool is_due;                /* the next walk records */
  uint64_t reuses;            /* walks in which something was taken over; written by the owner, read by all */
  struct hp_repeats *repeats; /* NULL: none yet, or none to be had */
  uint32_t walks;             /* counted up to HP_REPEATS_FIRST_WALK, when those are asked for */
  struct hp_memo *last_memo;  /* of the last walk that was a repetition */
  struct hp_hash_tail last_tail; /* of the last walk that took over all the rest */
  struct hp_remembered_frame frames[HP_REMEMBERED_FRAMES_MAX + 1];
  /* Of entry i, from whole_from on: */
  bool is_fp_live[HP_REMEMBERED_FRAMES_MAX + 1]; /* does any step from here on use this fp? Else it is any register */
  uint16_t first_slot[HP_REMEMBERED_FRAMES_MAX + 1];
  uint16_t first_reported[HP_REMEMBERED_FRAMES_MAX + 1];
  uintptr_t reported[HP_REMEMBERED_FRAMES_MAX + 1];
  uint64_t reported_sum[HP_REMEMBERED_FRAMES_MAX + 1]; /* of those from here on */
  struct hp_stack_slot slots[2 * HP_REMEMBERED_FRAMES_MAX];
};

enum { HP_REMEMBERED_FIRST_WALK = 3 }; /* a thread that samples once or twice needs no record */

struct hp_remembered_own {
  struct hp_remembered *record; /* NULL: none yet, or none to be had */
  uint32_t walks;               /* counted up to HP_REMEMBERED_FIRST_WALK, when the record is asked for */
};
extern __thread struct hp_remembered_own hp_remembered_tls HP_TLS;

/* A record for this thread into *own, empty: the one filed under its thread pointer, or a new one; NULL when there is no room. */
void hp_remembered_claim(struct hp_remembered_own *own);

/* This thread's repeats, or NULL. */
static inline struct hp_repeats *hp_remembered_repeats(struct hp_remembered *record) {
  if (HP_UNLIKELY(record->walks < HP_REPEATS_FIRST_WALK) && ++record->walks == HP_REPEATS_FIRST_WALK) {
    record->repeats = hp_repeats_create();
  }
  return record->repeats;
}

/* This thread's record, or NULL. */
static inline struct hp_remembered *hp_remembered_get(void) {
  struct hp_remembered_own *own = &hp_remembered_tls;
  if (HP_UNLIKELY(own->record == NULL && own->walks <= HP_REMEMBERED_FIRST_WALK) &&
      own->walks++ == HP_REMEMBERED_FIRST_WALK) {
    hp_remembered_claim(own);
  }
  return own->record;
}

/* This thread's record, and its repeats, are as new. */
void hp_remembered_forget(void);

/* An empty record for this generation. */
void hp_remembered_begin(struct hp_remembered *record, uint32_t generation);

/* Remember one more frame. Ignored when full, and when sp does not ascend. */
static inline void hp_remembered_add(struct hp_remembered *record, struct hp_remembered_frame frame) {
  uint32_t n = record->count;
  if (n == HP_REMEMBERED_FRAMES_MAX || (n > 0 && frame.sp <= record->frames[n - 1].sp)) return;
  record->frames[n] = frame;
  record->count = n + 1;
}

/* Nothing more to come: lists the slots. Reads them: on the walk's own thread and stack, right after it. */
void hp_remembered_end(struct hp_remembered *record);

/* Is everything from entry i, whose pc and sp are the walk's, to the outermost frame as it was? */
HP_READS_STACK static inline bool hp_remembered_is_rest_unchanged(const struct hp_remembered *record, uint32_t i,
                                                                  uintptr_t fp) {
  if (i < record->whole_from || i >= record->count) return false;
  if (record->is_fp_live[i] && record->frames[i].fp != fp) return false;
  return hp_stack_slots_hold(record->slots + record->first_slot[i], record->slots + record->slot_count);
}

/* How a walk went that used the record: of `total` frames `copied` were taken over, `rest` of them in one go up to the root. */
static inline void hp_remembered_judge(struct hp_remembered *record, size_t total, size_t copied, size_t rest) {
  if (copied > 0) hp_store_relaxed(&record->reuses, record->reuses + 1);
  if (HP_LIKELY(rest * 2 >= total)) {
    record->bad_walks = 0;
    if (++record->good_walks >= HP_REMEMBERED_GOOD_WALKS * record->bad_walks_max) record->bad_walks_max = 1;
    return;
  }
  record->good_walks = 0;
  if (++record->bad_walks >= record->bad_walks_max) {
    record->is_due = true;
    if (record->bad_walks_max < HP_REMEMBERED_BAD_WALKS_MAX) record->bad_walks_max *= 2;
  }
}

/* Sums over all threads. */
void hp_remembered_get_stats(uint64_t *out_reuses, size_t *out_bytes);

#endif
