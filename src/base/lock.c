/* SPDX-License-Identifier: MIT
 * lock.c - the contended way of lock.h: spin briefly (critical sections are short), then sleep in the kernel. */
#include "lock.h"

enum { HP_LOCK_SPINS = 100, HP_LOCK_SLEEP_NANOS = 1000000 };

static inline void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield" ::: "memory");
#endif
}

HP_COLD void hp_lock_acquire_slow(struct hp_lock *lock) {
  for (int i = 0; i < HP_LOCK_SPINS; i++) {
    if (hp_load_relaxed(&lock->word) == 0 && hp_lock_grab(lock)) return;
    pause_cpu();
  }
  /* From here on the word says 2 while we hold it: one wake-up too many at worst. One too few (lock.h) ends with the sleep. */
  const struct timespec sleep = {.tv_nsec = HP_LOCK_SLEEP_NANOS};
  while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0) {
    hp_sys_futex(&lock->word, FUTEX_WAIT_PRIVATE, 2, &sleep);
  }
}
