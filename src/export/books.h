/* SPDX-License-Identifier: MIT
 * books.h - reads both tables at one moment and turns them into rows: the only place where export meets record.
 *
 * Invariants  in every row 0 <= inuse <= alloc. Two readings without traffic in between are equal. Σ deltas telescope: a delta
 *             is a difference of two rounded integers, and the later one becomes the base of the next.
 * Callers     control/dump, one dump at a time (its lock guards the state kept between dumps).
 * Signals     async-signal-safe: arenas and raw mmap only.
 * Memory      readings live in the dump's arena; per stack 32 bytes stay between dumps when `delta` or a reset needs them. */
#ifndef HP_BOOKS_H
#define HP_BOOKS_H

#include "moment.h"
#include "snapshot.h"

/* One moment: rounded counters by stack id. */
struct hp_reading {
  uint32_t count;               /* of stacks */
  int64_t (*values)[HP_VALUES]; /* [stack id] */
  struct hp_aged_row *aged;     /* with the age label: live blocks by stack and age, see books.c; else NULL */
  size_t aged_count;
  int64_t totals[HP_VALUES]; /* since the start, whatever was reset */
};

/* The moment of now. 0 or -ENOMEM. */
int hp_books_read(struct hp_reading *out, struct hp_arena *arena);

/* The books at the peak (record/peak_tracker.h). *moment: now; becomes the peak's if that is past. 0 or -ENOMEM. */
int hp_books_read_peak(struct hp_reading *out, struct hp_arena *arena, struct hp_moment *moment);

/* Rows of one kind from a reading; for HP_KIND_DELTA since the last hp_books_delta_done(). 0 or -ENOMEM. */
int hp_books_rows(const struct hp_reading *reading, enum hp_profile_kind kind, struct hp_arena *arena,
                  const struct hp_row **out_rows, size_t *out_count);

/* What the rows of a full profile of this reading (or of the peak's) add up to, and the variance that sampling leaves in each sum: of
 * those that are in use that of now, whatever moment the reading is of. */
struct hp_books_sums {
  int64_t values[HP_VALUES];
  double variances[HP_VALUES];
};
void hp_books_sums(const struct hp_reading *reading, bool is_peak, struct hp_books_sums *out);

/* The delta file of this reading was written: the next delta starts here. The room was made by hp_books_rows(). */
void hp_books_delta_done(const struct hp_reading *reading);
/* The next delta starts at the moment of this reading, without a file (a forked child). */
int hp_books_delta_start(void);

/* heapprof_reset(): alloc columns count from now; in use stays and counts as allocated. 0 or -ENOMEM. */
int hp_books_reset(void);

#endif
