/* SPDX-License-Identifier: MIT
 * unwinder.h - the stack above a call of the allocator, as return addresses, leaf first.
 *
 * Invariants  takes no lock of libc or of the loader, makes no call into either but _dl_find_object, allocates nothing from
 *             the program's heap, reads no memory outside the mapped stack (stack_bounds.h) and the unwind tables of loaded
 *             objects.
 * Callers     preload/sampled_path, on the program's own thread and stack, inside the profiler's own section.
 * Cost        warm: one look-up in the shared rule cache and two or three loads a frame. */
#ifndef HP_UNWINDER_H
#define HP_UNWINDER_H

#include "compiler.h"
#include "hash.h"
#include "memo.h"

/* Deepest stack anybody may ask for, in frames: HEAPPROF_MAX_DEPTH's largest value, the leaf frames that are left out
 * later (operator new), and one more to know that there is more. */
enum {
  HP_STACK_DEPTH_MAX = 1024,
  HP_STACK_LEAF_EXTRA = 3,
  HP_STACK_WORDS_MAX = HP_STACK_DEPTH_MAX + HP_STACK_LEAF_EXTRA + 1
};

/* Where the walk begins: the frame that called the interposed function. */
struct hp_frame_start {
  uintptr_t pc; /* the return address into that frame */
  uintptr_t sp; /* its stack pointer just after the return */
  uintptr_t fp; /* its frame register (rbp, x29) at the call */
};

enum hp_unwind_flags {
  HP_UNWIND_TRUNCATED = 1,    /* more frames than max */
  HP_UNWIND_INCOMPLETE = 2,   /* ended at a frame without unwind data, or one that did not make sense */
  HP_UNWIND_MODULES_DIED = 4, /* a module known before was found to be gone (modules.h): walked again */
  HP_UNWIND_REPEATED = 8,     /* the thread's remembered stack, all of it: hp_unwind_memo() goes with it */
  HP_UNWIND_HAS_TAIL = 16,    /* hp_unwind_tail() knows the sum of the frames next to the root */
  HP_UNWIND_HINTS = HP_UNWIND_REPEATED | HP_UNWIND_HAS_TAIL, /* flags that say nothing of the stack itself */
};

/* Fill pcs[0..max) with return addresses, leaf first; frames of heapprof itself are left out (a start inside our own text
 * is stepped over). A frame interrupted by a signal is given as the address behind its instruction's first byte, so that
 * "minus one" is right for every entry. Returns their number, 0 when not even start->pc is usable; *out_flags gets
 * HP_UNWIND_*. Any thread; not to be re-entered by the same thread (callers hold their section flag). errno is untouched. */
size_t hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags);

/* Of the calling thread's last walk, if that was HP_UNWIND_REPEATED: all walks that find the same memo non-empty returned the
 * same pcs. Good until the thread's next walk. */
struct hp_memo *hp_unwind_memo(void);

/* Of the same, if it was HP_UNWIND_HAS_TAIL: how many of its last pcs were taken over together, and their sum. */
struct hp_hash_tail hp_unwind_tail(void);

/* The frame of the function that uses it: its caller is where the walk begins. Only in a function compiled with a frame
 * pointer that is itself entered by a tail call of the interposed name (or called by it: then that frame is stepped over).
 */
#if defined(__x86_64__)
#define HP_FRAME_START()                                                                        \
  ((struct hp_frame_start){.pc = (uintptr_t)__builtin_return_address(0),                        \
                           .sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(uintptr_t), \
                           .fp = *(const uintptr_t *)__builtin_frame_address(0)})
#elif defined(__aarch64__)
#define HP_FRAME_START()                                                                                \
  ((struct hp_frame_start){.pc = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)), \
                           .sp = (uintptr_t)__builtin_dwarf_cfa(),                                      \
                           .fp = *(const uintptr_t *)__builtin_frame_address(0)})
#endif

/* Has the function whose frame this was been left for ever, by longjmp? So it is if its return address no longer stands there, or if
 * `alive`, the frame of the caller or one above, is not below it; said only if the thread is on its own stack and the frame was on it.
 * Then what the thread remembers of its walks is forgotten: it may be half written. */
bool hp_unwind_was_left(uintptr_t frame, uintptr_t return_word, uintptr_t alive);

/* Where the function that this code of a loaded object belongs to begins and ends, by its unwind data. False: not known, or not to be had
 * without the private heap (object_find.h). Any thread. */
bool hp_unwind_find_function(uintptr_t pc, uintptr_t *out_start, uintptr_t *out_end);

/* Tests: drop every cached rule and remembered stack. Any thread. */
void hp_unwind_flush(void);

/* Around the program's dlclose: between the two nothing is cached; after it the modules that have gone are marked dead
 * (modules.h) and their rules dropped. Returns whether a known module died. Any thread. hp_unwind_after_unload takes locks
 * that a sample taken in a signal handler on this thread would wait for: call it inside the profiler's own section. Between this
 * thread's fork handlers, where it has these locks, both only note that there was one, for hp_unwind_catch_up(). */
void hp_unwind_before_unload(void);
bool hp_unwind_after_unload(void);

/* Behind the fork, on both sides, with no lock held: what such a dlclose would have done. Own section. */
void hp_unwind_catch_up(void);

/* In a forked child, none of this folder's locks held: the unloads that threads of the parent are in will never end here. Own
 * section. */
void hp_unwind_after_fork(void);

/* Tests: counters since the start. */
struct hp_unwind_stats {
  uint64_t rule_misses;   /* frames whose rule had to be read from .eh_frame */
  uint64_t slow_walks;    /* frames stepped with all registers (slow_step.h) */
  uint64_t prefix_reuses; /* walks that ended early at a remembered frame */
  uint64_t cache_bytes;   /* memory of the rule cache and remembered stacks */
};
void hp_unwind_get_stats(struct hp_unwind_stats *out);

/* Locks of this folder, the modules' too, around fork (control/fork.c). */
void hp_unwind_lock_all(void);
void hp_unwind_unlock_all(void);

#endif
