/* SPDX-License-Identifier: MIT
 * heap.h - the profiler's private heap: jemalloc linked in under private names, so that the profiler can never recurse into
 * the program's allocator. What it hands out is taken from the budget (budget.h).
 *
 * Callers     code inside the profiler's own section (thread_state.h), on any thread; never a dump that runs in a signal
 *             handler (that uses arenas only).
 * Locks       jemalloc's own, last in the lock order; hp_heap_lock_all around fork.
 * Signals     not for handlers. */
#ifndef HP_HEAP_H
#define HP_HEAP_H

#include <pthread.h>

#include "compiler.h"

/* size bytes aligned to 16, contents undefined; NULL near the ceiling, in a thread between its fork handlers, or when the system has no
 * memory or had none at many calls in a row, the last of them some milliseconds ago. */
void *hp_heap_alloc(size_t size);
/* The same, zeroed and aligned to a power of two. */
void *hp_heap_alloc_aligned_zero(size_t alignment, size_t size);
/* ptr from this heap, or NULL. */
void hp_heap_free(void *ptr);

/* Give freed pages back to the system (a system call or more: after a table shrank). */
void hp_heap_trim(void);

/* How jemalloc hears of the end of a thread; where libpthread came after the start (glibc < 2.34) it has to be told of the
 * functions before the first thread is made. NULL, NULL: there are none. */
typedef int hp_heap_key_create(pthread_key_t *, void (*)(void *));
typedef int hp_heap_set_specific(pthread_key_t, const void *);
bool hp_heap_has_thread_ends(void);
void hp_heap_set_thread_ends(hp_heap_key_create *create, hp_heap_set_specific *set);

/* Around fork. */
void hp_heap_lock_all(void);
void hp_heap_unlock_all_parent(void);
void hp_heap_unlock_all_child(void);

#endif
