/* SPDX-License-Identifier: MIT
 * dump.h - one dump at a time: read the books, encode each kind asked for, put each file in its place.
 *
 * Locks       the dump lock, taken by the caller through trigger.h; first in the lock order.
 * Callers     trigger.c (helper thread, end of a sampled allocation, signal handler, exit) and api.c.
 * Signals     async-signal-safe; all signals are blocked on the dumping thread meanwhile. */
#ifndef HP_DUMP_H
#define HP_DUMP_H

#include "compiler.h"

enum hp_dump_reason { HP_DUMP_SIGNAL, HP_DUMP_PERIODIC, HP_DUMP_GROWTH, HP_DUMP_EXIT, HP_DUMP_API, HP_DUMP_REASONS };

/* Write the profiles of this moment. path_template: NULL for HEAPPROF_OUT. The dump lock is held, the thread is in the
 * profiler's own section. 0, or the negative errno of the first file that failed (logged, counted). */
int hp_dump_write(enum hp_dump_reason reason, const char *path_template);

/* False: another thread dumps. */
bool hp_dump_try_lock(void);
/* Waits at most so long, asleep. */
bool hp_dump_lock_for(int64_t nanos);
void hp_dump_unlock(void);

struct hp_dump_stats {
  uint64_t written; /* dumps of which every file was written */
  uint64_t failed;
  uint64_t nanos_min, nanos_max, nanos_total;
};
/* Any thread; read without the lock: of a dump that ends just now it may hold a part. */
void hp_dump_get_stats(struct hp_dump_stats *out);

/* In a forked child, before anything else of it runs: numbers, counters and the list of periodic files start anew; the lock
 * is free. was_locked: a dump was under way in the parent, its scratch memory is given up. */
void hp_dump_after_fork(bool was_locked);

/* Tests: run between reading the books and writing the file. */
extern void (*hp_dump_test_pause)(void);

#endif
