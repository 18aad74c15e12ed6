/* SPDX-License-Identifier: MIT
 * id_map.h - 64-bit ids, chosen by whoever wrote the file, to indices.
 */
#ifndef HP_ID_MAP_H
#define HP_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. Nearly every writer numbers from 1 in the order of the file: then id is index + 1, which needs no memory
 * to know and no look-up to find. The rest goes to a hash table, seeded when first used, so that no file can make all its ids collide. */
struct hp_id_map {
  uint32_t in_order; /* the ids 1 .. in_order stand for the indices 0 .. in_order - 1 */
  struct hp_id_slot {
    uint64_t id;
    uint32_t index_plus_one; /* 0: empty */
  } * slots;
  size_t slot_count;
  size_t used;
  uint64_t seed;
};

/* Adds id -> index; false if the id is there already (unchanged). */
bool hp_id_map_add(struct hp_id_map *map, uint64_t id, uint32_t index);

/* The index of id, or UINT32_MAX. */
static inline uint32_t hp_id_map_find(const struct hp_id_map *map, uint64_t id);
uint32_t hp_id_map_find_hashed(const struct hp_id_map *map, uint64_t id); /* of those that are not in order */

/* Bytes held. */
size_t hp_id_map_memory_bytes(const struct hp_id_map *map);

void hp_id_map_free(struct hp_id_map *map);

static inline uint32_t hp_id_map_find(const struct hp_id_map *map, uint64_t id) {
  return id - 1 < map->in_order ? (uint32_t)(id - 1) : hp_id_map_find_hashed(map, id);
}

#endif
