/* SPDX-License-Identifier: MIT
 * walk_compare.h - hp_unwind against libunwind (the system's, through unw_step) from one and the same place.
 * Any thread, also in signal handlers. */
#ifndef HP_WALK_COMPARE_H
#define HP_WALK_COMPARE_H

#include "unwinder.h"

enum { WALK_MAX = 1100 };

struct walk_pair {
  size_t ours_count;
  size_t theirs_count;
  unsigned flags;
  int theirs_end; /* what the last unw_step gave: 0 the outermost frame, < 0 an error */
  uintptr_t ours[WALK_MAX];
  uintptr_t theirs[WALK_MAX];
};

/* Both stacks as seen by the caller's caller. */
void walk_both(struct walk_pair *out);
/* Ours only. */
size_t walk_ours(uintptr_t *pcs, size_t max, unsigned *out_flags);

/* Number of comparisons, and of ones that differed since the start (atomic); the first few differences go to stderr. */
extern uint64_t walk_comparisons;
extern uint64_t walk_differences;

/* Walks both ways and counts a difference unless the stacks are equal and ours is complete. True: equal. */
bool walk_check(void);
/* The same for callers that hold a pair. */
bool walk_pair_check(const struct walk_pair *pair);

#endif
