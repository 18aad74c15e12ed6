/* SPDX-License-Identifier: MIT
 * stack_bounds.h - which addresses above a stack pointer are mapped stack and may be read.
 *
 * A thread's own stack is known from its thread descriptor (pthreads) or from the loader's __libc_stack_end (main thread):
 * from a live stack pointer on it up to its end everything is mapped, for as long as the thread lives. Any other stack
 * (coroutines, sigaltstack, clone by hand) may go away between two walks and may end anywhere: its pages are probed, one by
 * one, anew in each walk.
 *
 * Invariants  a range handed out is readable in [lo, hi) while the walk that asked for it goes on.
 * Threads     a range belongs to one walk; what is learned is thread-local (40 bytes, initial-exec).
 * Signals     async-signal-safe. The probe is rt_sigprocmask with a nonsense `how`: the kernel reads the set, then refuses.
 *             No effect, no errno, and in the filters of sandboxed programs, where process_vm_readv or pipes are not. */
#ifndef HP_STACK_BOUNDS_H
#define HP_STACK_BOUNDS_H

#include "arch.h"
#include "compiler.h"

struct hp_stack_range {
  uintptr_t lo;
  uintptr_t hi;
};

enum hp_stack_bounds_kind { HP_STACK_UNKNOWN = 0, HP_STACK_PTHREAD, HP_STACK_MAIN };

struct hp_stack_own {
  struct hp_stack_range range; /* from any live sp inside up to hi all is mapped */
  uintptr_t foreign_below;     /* main thread: an sp below this is not on its own stack, or too far down to tell */
  uint32_t kind;
  uint32_t refusals; /* of such: now and then one is looked at again */
};
extern __thread struct hp_stack_own hp_stack_own_tls HP_TLS;

/* Can the 8 bytes at this aligned address be read? False also when the system call cannot tell. One system call. */
bool hp_stack_probe(uintptr_t address);
/* Can all of these bytes? One system call a page. */
bool hp_stack_probe_range(uintptr_t start, size_t bytes);

/* The range of a walk that begins at the live stack pointer sp: from sp on, or empty and to be grown by hp_stack_cover. */
void hp_stack_enter_slow(uintptr_t sp, struct hp_stack_range *out);
/* The same for a stack pointer read from memory (a signal frame): nothing is believed before it is probed. */
void hp_stack_enter_jump(uintptr_t sp, struct hp_stack_range *out);

static inline void hp_stack_enter(uintptr_t sp, struct hp_stack_range *out) {
  const struct hp_stack_own *own = &hp_stack_own_tls;
  if (HP_LIKELY(sp - own->range.lo < own->range.hi - own->range.lo)) {
    *out = (struct hp_stack_range){.lo = sp, .hi = own->range.hi};
  } else {
    hp_stack_enter_slow(sp, out);
  }
}

/* Makes the word at `address` part of the range, by probing, when it can be read. False: it cannot, or is not aligned. */
bool hp_stack_cover(struct hp_stack_range *range, uintptr_t address);

/* Does the step from sp to `target` lead from a stack made elsewhere back to the thread's own? Then the address may fall. */
bool hp_stack_is_way_home(uintptr_t sp, uintptr_t target);

static inline bool hp_stack_covers(const struct hp_stack_range *range, uintptr_t address) {
  return address >= range->lo && range->hi - range->lo >= sizeof(uintptr_t) && address <= range->hi - sizeof(uintptr_t);
}

/* Whole stacks and any code are read, whatever a sanitizer thinks of parts of them. */
#define HP_READS_STACK __attribute__((no_sanitize("address", "thread")))

/* The word at `address`, if it is readable stack. */
HP_READS_STACK static inline bool hp_stack_read(struct hp_stack_range *range, uintptr_t address, uintptr_t *out) {
  if (HP_UNLIKELY(!hp_stack_covers(range, address) || address % sizeof(uintptr_t) != 0) && !hp_stack_cover(range, address)) {
    return false;
  }
  *out = *(const uintptr_t *)address;
  return true;
}

#endif
