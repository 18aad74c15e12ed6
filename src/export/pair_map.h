/* SPDX-License-Identifier: MIT
 * pair_map.h - (64 bits, 32 bits) -> a small number, insert-only, in an arena.
 *
 * Invariants  open addressing, at most half full; a value is never 0; a full table is replaced by one twice as large.
 * Callers     the export folder; one owner at a time.
 * Signals     async-signal-safe. */
#ifndef HP_PAIR_MAP_H
#define HP_PAIR_MAP_H

#include "arena.h"

struct hp_pair_table;

struct hp_pair_map {
  struct hp_arena *arena;
  struct hp_pair_table *table; /* NULL: empty */
};

/* The value under (a, b), 0 if there is none. */
uint32_t hp_pair_map_get(const struct hp_pair_map *map, uint64_t a, uint32_t b);

/* Put value (not 0) under (a, b), which must not be there yet. false: no memory, the map is as it was. */
bool hp_pair_map_put(struct hp_pair_map *map, uint64_t a, uint32_t b, uint32_t value);

#endif
