/* SPDX-License-Identifier: MIT
 * budget.h - the one ceiling on all memory of the profiler (HEAPPROF_MAX_MEMORY), and how much of it is in use.
 *
 * Invariants  what the heap has handed out (heap.h), what arenas have mapped (arena.h), other mappings and what is asked for, together,
 *             never exceed the ceiling; the little that a heap rounds up may.
 * Threads     any. Signals: async-signal-safe. Errors: none but "false". */
#ifndef HP_BUDGET_H
#define HP_BUDGET_H

#include "compiler.h"

/* Of the ceiling, in eighths: the tables' heap stops at four, since a dump needs about as much for its scratch as the stacks
 * take (some 110 bytes each), and a table that no dump can show is worth nothing; and the live table stops growing at three,
 * so that new stacks still find room and the alloc columns stay exact. */
enum { HP_HEAP_EIGHTHS = 4, HP_LIVE_EIGHTHS = 3 };

/* The ceiling in bytes (default: none). At start-up. */
void hp_memory_set_ceiling(size_t bytes);
/* Bytes in use by the profiler. */
size_t hp_memory_used(void);
/* Is at least this many eighths of the ceiling in use? */
bool hp_memory_above_eighths(unsigned eighths);

/* Take size bytes from the budget; false at the ceiling, then nothing is taken. Give them back. */
bool hp_memory_reserve(size_t size);
void hp_memory_release(size_t size);
/* So many more are in use than were reserved: they are there already. */
void hp_memory_add(size_t size);

#endif
