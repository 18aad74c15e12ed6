/* SPDX-License-Identifier: MIT
 * thread_state.h - what the profiler keeps for each thread: 48 bytes of initial-exec TLS, all zero in a new thread.
 *
 * Invariants  `section` is not 0 while the thread is inside the profiler; calls of the allocator then pass through
 *             unsampled, and a handler that wants a dump leaves a request instead (control/trigger).
 * Threads     each its own, plus signal handlers on it: `section` and `dump_wanted` are volatile for them. */
#ifndef HP_THREAD_STATE_H
#define HP_THREAD_STATE_H

#include "compiler.h"
#include "rng.h"

struct hp_thread_state {
  uint64_t bytes_left;          /* allocations of up to this many bytes in all go unsampled; 0 in a new thread */
  uint64_t rate_epoch;          /* of the rate for which bytes_left was drawn; 0: none yet (hot.h counts from 1) */
  struct hp_rng rng;
  volatile uint32_t section;    /* depth of the profiler's own section */
  volatile uint8_t dump_wanted; /* a request arrived while `section` was not 0: serve it at the section's end */
  uint8_t holds_all_locks;      /* this thread is between the fork handlers: locks are taken already */
  uint16_t name_id;             /* label `thread` */
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

#endif
