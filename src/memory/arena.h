/* SPDX-License-Identifier: MIT
 * arena.h - bump memory straight from mmap: for a dump, which may run in a signal handler, and for names that live for ever.
 *
 * Invariants  memory comes zeroed and aligned to 16; nothing is freed singly; chunks count against the ceiling of heap.h.
 * Callers     one owner at a time (an arena has no lock).
 * Signals     async-signal-safe: raw mmap and munmap only. */
#ifndef HP_ARENA_H
#define HP_ARENA_H

#include "compiler.h"

struct hp_arena_chunk;

struct hp_arena {
  struct hp_arena_chunk *chunks; /* the first is the one taken from */
  size_t chunk_bytes;            /* smallest mapping; 0: 256 KiB */
  size_t mapped_bytes;
};

/* size bytes, zeroed; NULL at the ceiling or when mmap fails. */
void *hp_arena_alloc(struct hp_arena *arena, size_t size);
/* A copy of n bytes with a 0 behind them; NULL as above. */
char *hp_arena_copy(struct hp_arena *arena, const char *bytes, size_t n);
/* Give everything back. The arena is empty and usable. */
void hp_arena_reset(struct hp_arena *arena);

/* zlib's allocation hooks over an arena (opaque: the arena): alloc_func and free_func (which does nothing). */
void *hp_arena_zalloc(void *opaque, unsigned items, unsigned size);
void hp_arena_zfree(void *opaque, void *ptr);

#endif
