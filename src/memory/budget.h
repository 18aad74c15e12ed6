/* SPDX-License-Identifier: MIT
 * budget.h - the one ceiling on all memory of the profiler (HEAPPROF_MAX_MEMORY), and how much of it is in use.
 *
 * Invariants  what the heap has handed out (heap.h), what arenas have mapped (arena.h), other mappings and what is asked for, together,
 *             never exceed the ceiling; the little that a heap rounds up may.
 * Threads     any. Signals: async-signal-safe. Errors: none but "false". */
#ifndef HP_BUDGET_H
#define HP_BUDGET_H

#include "compiler.h"

/* Who stops where. A table that no dump can show is worth nothing, so all tables together leave a dump the scratch that it takes:
 * HP_DUMP_BYTES whatever there is to write (at most five eighths of the ceiling), and of the rest about as much as the stacks
 * take (some 110 bytes each; with labels two, with ages three times that). The live table stops at three quarters of the
 * tables' part, so that new stacks still find room and the alloc columns stay exact. Of the ceiling's last eighth a dump takes
 * nothing for names of functions, which a reader can find: it is for the rows. */
enum { HP_DUMP_BYTES = 640 * 1024 };
enum hp_memory_part { HP_MEMORY_LIVE, HP_MEMORY_TABLES, HP_MEMORY_NAMES };

/* The ceiling in bytes (default: none). At start-up. */
void hp_memory_set_ceiling(size_t bytes);
/* The tables' part in eighths (default 4), by how much a row is going to take in a dump. At start-up. */
void hp_memory_set_tables_eighths(unsigned eighths);
/* Bytes in use by the profiler. */
size_t hp_memory_used(void);
/* Is so much in use that this part may take no more? */
bool hp_memory_is_full(enum hp_memory_part part);

/* Take size bytes from the budget; false at the ceiling, then nothing is taken. Give them back. */
bool hp_memory_reserve(size_t size);
void hp_memory_release(size_t size);
/* So many more are in use than were reserved: they are there already. */
void hp_memory_add(size_t size);

#endif
