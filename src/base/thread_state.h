/* SPDX-License-Identifier: MIT
 * thread_state.h - what the profiler keeps for each thread: 48 bytes of initial-exec TLS, all zero in a new thread.
 *
 * Invariants  `section` is not 0 while the thread is inside the profiler; calls of the allocator then pass through
 *             unsampled, and a handler that wants a dump leaves a request instead (control/trigger).
 *             A handler of the program may end there by exit(), or free a block: then it looks at `locks_held`.
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
  uint64_t new_size;            /* of the last operator new that was only forwarded (preload/interpose_cxx.c) */
};

extern __thread struct hp_thread_state hp_thread HP_TLS;

static inline void hp_section_enter(void) {
  hp_thread.section = hp_thread.section + 1;
  hp_signal_fence();
}

/* The caller serves hp_thread.dump_wanted afterwards (preload/sampled_path). */
static inline void hp_section_leave(void) {
  hp_signal_fence();
  hp_thread.section = hp_thread.section - 1;
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
