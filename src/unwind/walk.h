/* SPDX-License-Identifier: MIT
 * walk.h - a walk under way, and the parts of it that are out of the loop of unwinder.c: reading a rule that is not cached
 * (walk_rule.c) and stepping from a frame that is not plain (walk_special.c).
 *
 * Invariants  every word is read only after a comparison with the range of stack known to be mapped (stack_bounds.h). CFAs
 *             grow strictly, but for signal frames, whose number is bounded, and for the one way home from a stack made by hand.
 * Locks       the rule cache's try-lock and that of modules.h when a rule is read; none otherwise.
 * Callers     unwinder.c. Any thread, async-signal-safe but for the private heap. */
#ifndef HP_WALK_H
#define HP_WALK_H

#include "cfi_expression.h"
#include "stack_bounds.h"
#include "unwinder.h"

enum { HP_WALK_PC_MIN = 4096 }; /* no code below, and no tag of the cache */

struct hp_walk {
  uintptr_t key; /* return address into the current frame; its pc + HP_PC_STEP when it was interrupted there by a signal */
  uintptr_t sp;
  uintptr_t fp;
  struct hp_stack_range range;
  unsigned flags;
  uint32_t generation;
  unsigned signals;
  unsigned own_frames;
  uintptr_t *out; /* where the next frame is reported */
  const uintptr_t *end;
  const uintptr_t *begin;
  uintptr_t interrupted_key; /* of the last frame found interrupted by a signal */
  bool has_registers;        /* of a frame further down: the next slow frame is reached from there */
  uintptr_t registers_address;
  struct hp_registers registers;
};

/* Statistics of all walks (atomic). */
struct hp_walk_counters {
  uint64_t rule_misses;
  uint64_t slow_frames;
};
extern struct hp_walk_counters hp_walk_counters;

/* The rule (rule.h, tag bits 0) of a key that is not cached; caches it. Registers the module it is in. */
uint64_t hp_walk_read_rule(struct hp_walk *walk, uintptr_t key);

/* Reports the walk's current frame and steps to its caller. False: the walk ends here (walk->flags says how). */
bool hp_walk_step_special(struct hp_walk *walk, uint64_t rule);

#endif
