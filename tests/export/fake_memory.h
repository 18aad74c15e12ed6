/* SPDX-License-Identifier: MIT
 * fake_memory.h - the budget of heap.h for the tests of the export folder: arenas only, and a request that fails. */
#ifndef HP_FAKE_MEMORY_H
#define HP_FAKE_MEMORY_H

#include "heap.h"

/* The k-th chunk from now on is refused (1: the next), and every later one; 0: none. */
void fake_memory_fail_at(unsigned k);

/* From now on the ceiling is near (or not): memory is given, but not for what can be done without. */
void fake_memory_fill(bool fill);

/* The k-th piece of an arena from now on is refused (1: the next), and no other; 0: none. Returns whether the last order came to
 * that. */
bool fake_memory_refuse_piece(unsigned k);

#endif
