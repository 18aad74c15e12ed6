/* SPDX-License-Identifier: MIT
 * id_map.c - see id_map.h. Open addressing, at most half full.
 */
#include "id_map.h"

#include <stdlib.h>
#include <sys/random.h>

#include "cli_memory.h"

static size_t first_slot(const struct hp_id_map *map, uint64_t id) {
  uint64_t hash = (id ^ map->seed) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93u;
  return (size_t)(hash ^ hash >> 32) & (map->slot_count - 1);
}

static void put(struct hp_id_map *map, uint64_t id, uint32_t index_plus_one) {
  size_t slot = first_slot(map, id);
  while (map->slots[slot].index_plus_one != 0) slot = (slot + 1) & (map->slot_count - 1);
  map->slots[slot] = (struct hp_id_slot){id, index_plus_one};
}

static void grow(struct hp_id_map *map) {
  struct hp_id_slot *old = map->slots;
  size_t old_count = map->slot_count;
  if (old_count == 0 && getrandom(&map->seed, sizeof map->seed, GRND_NONBLOCK) != (ssize_t)sizeof map->seed) map->seed = 1;
  map->slot_count = old_count == 0 ? 64 : old_count * 2;
  map->slots = hp_alloc_cleared(map->slot_count, sizeof *map->slots);
  for (size_t i = 0; i < old_count; i++)
    if (old[i].index_plus_one != 0) put(map, old[i].id, old[i].index_plus_one);
  free(old);
}

bool hp_id_map_add(struct hp_id_map *map, uint64_t id, uint32_t index) {
  if (hp_id_map_find(map, id) != UINT32_MAX) return false;
  if (index == map->in_order && id == (uint64_t)index + 1) {
    map->in_order++;
    return true;
  }
  if ((map->used + 1) * 2 > map->slot_count) grow(map);
  put(map, id, index + 1);
  map->used++;
  return true;
}

uint32_t hp_id_map_find_hashed(const struct hp_id_map *map, uint64_t id) {
  if (map->slot_count == 0) return UINT32_MAX;
  for (size_t slot = first_slot(map, id); map->slots[slot].index_plus_one != 0; slot = (slot + 1) & (map->slot_count - 1))
    if (map->slots[slot].id == id) return map->slots[slot].index_plus_one - 1;
  return UINT32_MAX;
}

size_t hp_id_map_memory_bytes(const struct hp_id_map *map) { return map->slot_count * sizeof *map->slots; }

void hp_id_map_free(struct hp_id_map *map) {
  free(map->slots);
  *map = (struct hp_id_map){0};
}
