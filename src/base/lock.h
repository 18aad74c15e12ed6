/* SPDX-License-Identifier: MIT
 * lock.h - a small mutex that needs no libc and survives fork.
 * Invariants  `word` is 0 (free), 1 (held) or 2 (held, and somebody may sleep). A release is two plain accesses, no exchange (a
 *             sample has two): who says 2 just between them is not woken, so nobody sleeps longer than a millisecond at a time.
 * Rules       held for a few dozen instructions, never across a system call other than its own futex (the memory ranks
 *             excepted: the private heap may map), never taken in a signal handler that may have interrupted a holder: the
 *             profiler's own sections are marked in thread_state.h and handlers defer (control/trigger). The program's own
 *             handlers may come to us while one is held: every lock is counted in hp_thread.locks_held.
 * Order       docs/architecture.md has it; nobody takes one while holding a later one.
 * Fork        control/fork takes every lock before fork and releases them on both sides. */
#ifndef HP_LOCK_H
#define HP_LOCK_H

#include <linux/futex.h>

#include "compiler.h"
#include "sys.h"
#include "thread_state.h"

struct hp_lock {
  uint32_t word;
};

/* hp_lock_acquire() of a lock that was not free, without the count: sleeps until it has it. */
void hp_lock_acquire_slow(struct hp_lock *lock);

/* The bare word, for hp_lock_acquire_slow(). */
static inline bool hp_lock_grab(struct hp_lock *lock) {
  uint32_t expected = 0;
  return __atomic_compare_exchange_n(&lock->word, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The bare word's release, for hp_lock_release() and the private heap's mutexes. */
static inline void hp_lock_drop(struct hp_lock *lock) {
  uint32_t word = hp_load_relaxed(&lock->word);
  hp_store_release(&lock->word, 0);
  if (HP_UNLIKELY(word == 2)) hp_sys_futex(&lock->word, FUTEX_WAKE_PRIVATE, 1, NULL);
}

static inline bool hp_lock_try(struct hp_lock *lock) {
  hp_thread_lock_begin();
  if (HP_LIKELY(hp_lock_grab(lock))) return true;
  hp_thread_lock_end();
  return false;
}

static inline void hp_lock_acquire(struct hp_lock *lock) {
  hp_thread_lock_begin();
  if (HP_UNLIKELY(!hp_lock_grab(lock))) hp_lock_acquire_slow(lock);
}

static inline void hp_lock_release(struct hp_lock *lock) {
  hp_lock_drop(lock);
  hp_thread_lock_end();
}

#endif
