/* SPDX-License-Identifier: MIT
 * index_table.h - which entry of an array equals a key. The array, the comparison and the hash are the caller's.
 */
#ifndef HP_INDEX_TABLE_H
#define HP_INDEX_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. Open addressing, at most half full. Part of the hash beside the index spares most looks at the entry and all
 * rehashing. */
struct hp_index_table {
  struct hp_index_slot {
    uint32_t hash, index_plus_one; /* 0: empty */
  } * slots;
  size_t slot_count, used; /* slot_count: a power of two, or 0 */
};

/* Whether the entry `index` of the caller's array equals the key; `context` is the caller's. */
typedef bool hp_index_equal(const void *context, uint32_t index, const void *key);

/* The entry equal to key; else `next` (below HP_NONE), which has been entered: the caller appends the entry under that index before the
 * next call. `hash` should be seeded where the keys come from a file, so that no file can make them all collide. */
uint32_t hp_index_table_find_or_add(struct hp_index_table *table, uint64_t hash, hp_index_equal *equal, const void *context,
                                    const void *key, size_t next);

/* Room for so many entries in all: to spare growing step by step where the number is known. */
void hp_index_table_reserve(struct hp_index_table *table, size_t entries);

/* The table is empty again. */
void hp_index_table_free(struct hp_index_table *table);

#endif
