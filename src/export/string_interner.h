/* SPDX-License-Identifier: MIT
 * string_interner.h - strings by number: 0 is "", then 1, 2, 3, ... as they came; equal strings share a number.
 *
 * Invariants  every string is valid UTF-8, at most HP_STRING_BYTES_MAX long (the rest is cut off) and never moves.
 * Ownership   a valid string that came with `borrow` is not copied: it must outlive the interner.
 * Callers     the export folder; one owner at a time.
 * Signals     async-signal-safe. */
#ifndef HP_STRING_INTERNER_H
#define HP_STRING_INTERNER_H

#include "arena.h"

/* A path is at most 4 KiB and a symbol's name is cut there; each byte may become three (U+FFFD). */
enum { HP_STRING_BYTES_MAX = 3 * 4096 };
/* What hp_string_interner_add returns when there is no memory. */
#define HP_STRING_NONE UINT32_MAX

struct hp_interner_table;

struct hp_string_interner {
  struct hp_arena *arena;
  struct hp_interner_table *table; /* NULL: nothing but "" */
};

/* The number of the string of n bytes; HP_STRING_NONE: no memory. */
uint32_t hp_string_interner_add(struct hp_string_interner *interner, const char *bytes, size_t n, bool borrow);
/* How many strings there are, "" included. */
uint32_t hp_string_interner_count(const struct hp_string_interner *interner);
/* String number `id` (below the count), with a 0 behind it unless it was borrowed without one. *out_n gets its length. */
const char *hp_string_interner_get(const struct hp_string_interner *interner, uint32_t id, size_t *out_n);

#endif
