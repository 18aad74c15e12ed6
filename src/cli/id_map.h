/* SPDX-License-Identifier: MIT
 * id_map.h - 64-bit ids, chosen by whoever wrote the file, to indices.
 */
#ifndef HP_ID_MAP_H
#define HP_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. Seeded when first used, so that no file can make all its ids collide. */
struct hp_id_map {
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
uint32_t hp_id_map_find(const struct hp_id_map *map, uint64_t id);

/* Bytes held. */
size_t hp_id_map_memory_bytes(const struct hp_id_map *map);

void hp_id_map_free(struct hp_id_map *map);

#endif
