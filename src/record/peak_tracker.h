/* SPDX-License-Identifier: MIT
 * peak_tracker.h - what every stack held when the in-use estimate stood highest, kept without copying the books.
 *
 * Copy on write: while the total stands at its maximum, the peak is the books as they are. When it falls below, the moment
 * stays valid through `generation`: before a stack's counters change for the first time after it, they are saved beside it.
 * A new maximum makes the books the peak again and all saved values stale (the generation moves on).
 * Invariant   peak of a stack = saved values if !is_at_peak and saved.generation == generation, else its counters now.
 * Locks       one, held around each change of a counter while the tracker is on: the order of changes is the order of the
 *             totals.
 * Memory      40 bytes a stack, in pages of the private heap; without room a stack's part of the peak is what it holds
 *             when it is read.
 * Cost        that lock and one more cache line a sample.
 * Signals     reading is async-signal-safe for a thread outside the profiler's own section. */
#ifndef HP_PEAK_TRACKER_H
#define HP_PEAK_TRACKER_H

#include "moment.h"
#include "stack_table.h"

/* At start-up, before the first sample. */
void hp_peak_tracker_enable(void);
bool hp_peak_tracker_is_on(void);

/* Add to a stack's counters, keeping the peak. Only while the tracker is on. In the profiler's own section. */
void hp_peak_tracker_add_alloc(struct hp_stack *stack, uint64_t objects, uint64_t bytes);
void hp_peak_tracker_add_free(struct hp_stack *stack, uint64_t objects, uint64_t bytes);

/* The counters of a stack at the peak, in fixed point. Lock held (hp_peak_tracker_lock). */
void hp_peak_tracker_get(const struct hp_stack *stack, struct hp_stack_counts *out);
/* When was the peak? false: it is now, and *out is not touched. Lock held. */
bool hp_peak_tracker_is_past(struct hp_moment *out);

/* In a forked child, which has never held what its parent did: its peak begins with what it holds. Takes no lock; not from inside
 * one. */
void hp_peak_tracker_after_fork(void);

/* For a reader of several stacks, and around fork. */
void hp_peak_tracker_lock(void);
void hp_peak_tracker_unlock(void);

#endif
