/* SPDX-License-Identifier: MIT
 * thread_state.h - what the profiler keeps for each thread: 64 bytes of initial-exec TLS, all zero in a new thread.
 *
 * Invariants  `section` is not 0 while the thread is inside the profiler; calls of the allocator then pass through
 *             unsampled, and a handler that wants a dump leaves a request instead (control/trigger).
 *             A handler of the program may end there by exit(), or free a block: then it looks at `locks_held`. Or it may
 *             leave by longjmp: then nobody comes to the section's end (preload/sampled_path, hp_sampled_decide).
 * Threads     each its own, plus signal handlers on it: what they look at is volatile. */
#ifndef HP_THREAD_STATE_H
#define HP_THREAD_STATE_H

#include "compiler.h"
#include "rng.h"

struct hp_thread_state {
  uint64_t bytes_left; /* allocations of up to this many bytes in all go unsampled; 0 in a new thread */
  uint64_t rate_epoch; /* of the rate for which bytes_left was drawn; 0: none yet (hot.h counts from 1) */
  struct hp_rng rng;
  volatile uint32_t section;    /* depth of the profiler's own section */
  volatile uint8_t dump_wanted; /* a request arrived while `section` was not 0: serve it at the section's end */
  uint8_t holds_all_locks;      /* this thread is between the fork handlers: locks are taken already */
  uint16_t name_id;             /* label `thread` */
  volatile uint32_t locks_held; /* held, or being taken or released: a handler that finds one must not wait for any */
  uint32_t takings;             /* sections that only took a record out (preload/sampled_path) */
  uintptr_t section_frame;      /* frame of the function that entered the outermost section, the last time */
  uintptr_t section_return;     /* where it returns to, as that stands in the frame */
  uint64_t new_size;            /* of the last operator new that was only forwarded (preload/interpose_cxx.c) */
};

extern __thread struct hp_thread_state hp_thread HP_TLS;

/* Inlined always: the frame it notes is that of the function that is to leave the section, too. */
static inline __attribute__((always_inline)) void hp_section_enter(void) {
  if (hp_thread.section == 0) {
    const uintptr_t *frame = __builtin_frame_address(0);
    hp_thread.section_frame = (uintptr_t)frame;
    hp_thread.section_return = frame[1];
  }
  hp_signal_fence();
  hp_thread.section = hp_thread.section + 1;
  hp_signal_fence();
}

/* The caller serves hp_thread.dump_wanted afterwards (preload/sampled_path). */
static inline void hp_section_leave(void) {
  hp_signal_fence();
  if (HP_LIKELY(hp_thread.section != 0)) hp_thread.section = hp_thread.section - 1; /* 0: taken for left by longjmp */
}

static inline void hp_thread_lock_begin(void) {
  hp_thread.locks_held = hp_thread.locks_held + 1;
  hp_signal_fence();
}

static inline void hp_thread_lock_end(void) {
  hp_signal_fence();
  hp_thread.locks_held = hp_thread.locks_held - 1;
}

/* This thread interrupted itself while it held one of the profiler's locks (and is not between the fork handlers). */
static inline bool hp_thread_is_inside_lock(void) {
  return HP_UNLIKELY(hp_thread.locks_held != 0) && hp_thread.holds_all_locks == 0;
}

#endif
