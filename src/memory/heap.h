/* SPDX-License-Identifier: MIT
 * heap.h - the profiler's private heap: jemalloc linked in under private names, so that the profiler can never recurse into
 * the program's allocator; and the one ceiling on all memory of the profiler (HEAPPROF_MAX_MEMORY).
 *
 * Invariants  bytes handed out, plus what arenas have mapped (arena.h), plus what is asked for, never exceed the ceiling.
 * Callers     code inside the profiler's own section (thread_state.h), on any thread; never a dump that runs in a signal
 *             handler (that uses arenas only).
 * Locks       jemalloc's own, last in the lock order; hp_heap_lock_all around fork.
 * Signals     not for handlers. */
#ifndef HP_HEAP_H
#define HP_HEAP_H

#include <pthread.h>

#include "compiler.h"

/* Of the ceiling, in eighths: the tables' heap stops at four, since a dump needs about as much for its scratch as the stacks
 * take (some 110 bytes each), and a table that no dump can show is worth nothing; and the live table stops growing at three,
 * so that new stacks still find room and the alloc columns stay exact. */
enum { HP_HEAP_EIGHTHS = 4, HP_LIVE_EIGHTHS = 3 };

/* size bytes aligned to 16, contents undefined; NULL near the ceiling or when the system has no memory. */
void *hp_heap_alloc(size_t size);
/* The same, zeroed and aligned to a power of two. */
void *hp_heap_alloc_aligned_zero(size_t alignment, size_t size);
/* ptr from this heap, or NULL. */
void hp_heap_free(void *ptr);

/* The ceiling in bytes (default: none). */
void hp_memory_set_ceiling(size_t bytes);
/* Bytes in use by the profiler: heap and arenas. Any thread, async-signal-safe. */
size_t hp_memory_used(void);
/* Take size bytes from the budget; false at the ceiling. Give them back. Any thread, async-signal-safe. */
bool hp_memory_reserve(size_t size);
void hp_memory_release(size_t size);

/* Is at least this many eighths of the ceiling in use? Any thread, async-signal-safe. */
bool hp_memory_above_eighths(unsigned eighths);
/* Give freed pages back to the system (a system call or more: after a table shrank). */
void hp_heap_trim(void);

/* Is this process a copy of the one that used the heap before, made by a fork of any kind (clone, _Fork) and not yet
 * claimed? One load; a vfork child, which shares the memory, is none. Async-signal-safe. */
bool hp_memory_is_copy(void);
/* The copy is told: it is one no more. */
void hp_memory_claim(void);

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
