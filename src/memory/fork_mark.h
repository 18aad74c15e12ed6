/* SPDX-License-Identifier: MIT
 * fork_mark.h - is this process a copy that a fork of any kind made, of which nobody told us (clone, _Fork)?
 * Threads: any. Signals: async-signal-safe. */
#ifndef HP_FORK_MARK_H
#define HP_FORK_MARK_H

#include "compiler.h"

/* This process has something that a copy must not take for its own. Once; without memory, or before Linux 4.14, copies go
 * unnoticed. */
void hp_memory_mark(void);
/* Is it a copy of the one that was marked, and not yet claimed? One load; a vfork child, which shares the memory, is none. */
bool hp_memory_is_copy(void);
/* The copy is told: it is one no more. */
void hp_memory_claim(void);

#endif
