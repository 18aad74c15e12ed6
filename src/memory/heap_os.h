/* SPDX-License-Identifier: MIT
 * heap_os.h - between heap.c and heap_os.c. */
#ifndef HP_HEAP_OS_H
#define HP_HEAP_OS_H

#include "compiler.h"
#include "lock.h"

/* Held while jemalloc starts, and while it is told how it hears of the end of a thread. */
extern struct hp_lock hp_heap_start_lock;
/* Has a start succeeded? Any thread, async-signal-safe. */
bool hp_heap_is_started(void);

#endif
