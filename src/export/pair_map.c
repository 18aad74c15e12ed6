/* SPDX-License-Identifier: MIT
 * pair_map.c - see pair_map.h. A table that is full is copied into one twice as large; the arena keeps the old one. */
#include "pair_map.h"

#include "hash.h"

enum { PAIR_SLOTS_MIN = 256 };

struct pair_slot {
  uint64_t a;
  uint32_t b;
  uint32_t value; /* 0: empty */
};

struct hp_pair_table {
  uint32_t mask; /* slots - 1 */
  uint32_t count;
  struct pair_slot slots[];
};

static uint32_t slot_of(uint64_t a, uint32_t b, uint32_t mask) {
  return (uint32_t)(((a ^ (a >> 32) ^ ((uint64_t)b << 40)) * HP_HASH_MULTIPLIER) >> 32) & mask;
}

uint32_t hp_pair_map_get(const struct hp_pair_map *map, uint64_t a, uint32_t b) {
  const struct hp_pair_table *table = map->table;
  if (table == NULL) return 0;
  for (uint32_t i = slot_of(a, b, table->mask);; i = (i + 1) & table->mask) {
    const struct pair_slot *slot = &table->slots[i];
    if (slot->value == 0) return 0;
    if (slot->a == a && slot->b == b) return slot->value;
  }
}

static void insert(struct hp_pair_table *table, uint64_t a, uint32_t b, uint32_t value) {
  uint32_t i = slot_of(a, b, table->mask);
  while (table->slots[i].value != 0) i = (i + 1) & table->mask;
  table->slots[i].a = a;
  table->slots[i].b = b;
  table->slots[i].value = value;
  table->count++;
}

static bool grow(struct hp_pair_map *map) {
  const struct hp_pair_table *old = map->table;
  uint64_t slots = old == NULL ? PAIR_SLOTS_MIN : ((uint64_t)old->mask + 1) * 2;
  if (slots > (uint64_t)1 << 31) return false;
  struct hp_pair_table *table = hp_arena_alloc(map->arena, sizeof *table + slots * sizeof table->slots[0]);
  if (table == NULL) return false;
  table->mask = (uint32_t)(slots - 1);
  for (uint64_t i = 0; old != NULL && i <= old->mask; i++) {
    if (old->slots[i].value != 0) insert(table, old->slots[i].a, old->slots[i].b, old->slots[i].value);
  }
  map->table = table;
  return true;
}

bool hp_pair_map_put(struct hp_pair_map *map, uint64_t a, uint32_t b, uint32_t value) {
  if (map->table == NULL || map->table->count > map->table->mask / 2) {
    if (!grow(map)) return false;
  }
  insert(map->table, a, b, value);
  return true;
}
