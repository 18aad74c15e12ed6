/* SPDX-License-Identifier: MIT
 * compiler.h - the few attributes and atomics the whole library uses; no code. */
#ifndef HP_COMPILER_H
#define HP_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HP_EXPORT __attribute__((visibility("default")))
#define HP_COLD __attribute__((cold, noinline))
#define HP_HOT_CODE __attribute__((aligned(64))) /* the whole test in one line of the code cache */
#define HP_NOINLINE __attribute__((noinline))
#define HP_TLS __attribute__((tls_model("initial-exec")))
#define HP_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#define HP_LIKELY(x) __builtin_expect(!!(x), 1)
#define HP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HP_CACHE_LINE 64
#define HP_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define hp_load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define hp_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define hp_store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define hp_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define hp_add_relaxed(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define hp_exchange(p, v) __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL)

/* Is bytes[index], which others may be writing, not 0? hp_load_relaxed, but compared where it lies: gcc keeps an atomic load
 * apart, and even a volatile one, which is an instruction more in every free. */
static inline bool hp_is_byte_set(const uint8_t *bytes, uint64_t index) {
#if defined(__x86_64__)
  bool is_set;
  __asm__ volatile("cmpb $0, (%1,%2)" : "=@ccne"(is_set) : "r"(bytes), "r"(index));
  return is_set;
#else
  return hp_load_relaxed(&bytes[index]) != 0;
#endif
}

/* Between a store and a signal handler of the same thread: keeps the compiler from moving accesses across. */
#define hp_signal_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#endif
