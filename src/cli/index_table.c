/* SPDX-License-Identifier: MIT
 * index_table.c - see index_table.h.
 */
#include "index_table.h"

#include <stdlib.h>

#include "cli_memory.h"

enum { SLOTS_FIRST = 256 };

void hp_index_table_reserve(struct hp_index_table *table, size_t entries) {
  if (table->slot_count != 0 && entries * 2 <= table->slot_count) return;
  struct hp_index_table old = *table;
  if (table->slot_count == 0) table->slot_count = SLOTS_FIRST;
  while (table->slot_count < entries * 2) table->slot_count *= 2;
  table->slots = hp_alloc_cleared(table->slot_count, sizeof *table->slots);
  for (size_t i = 0; i < old.slot_count; i++) {
    if (old.slots[i].index_plus_one == 0) continue;
    size_t slot = old.slots[i].hash & (table->slot_count - 1);
    while (table->slots[slot].index_plus_one != 0) slot = (slot + 1) & (table->slot_count - 1);
    table->slots[slot] = old.slots[i];
  }
  free(old.slots);
}

uint32_t hp_index_table_find_or_add(struct hp_index_table *table, uint64_t hash, hp_index_equal *equal, const void *context,
                                    const void *key, size_t next) {
  if ((table->used + 1) * 2 > table->slot_count) hp_index_table_reserve(table, table->used + 1);
  uint32_t short_hash = (uint32_t)(hash >> 32 ^ hash);
  size_t slot = short_hash & (table->slot_count - 1);
  for (; table->slots[slot].index_plus_one != 0; slot = (slot + 1) & (table->slot_count - 1))
    if (table->slots[slot].hash == short_hash && equal(context, table->slots[slot].index_plus_one - 1, key))
      return table->slots[slot].index_plus_one - 1;
  table->slots[slot] = (struct hp_index_slot){short_hash, (uint32_t)next + 1};
  table->used++;
  return (uint32_t)next;
}

void hp_index_table_free(struct hp_index_table *table) {
  free(table->slots);
  *table = (struct hp_index_table){0};
}
