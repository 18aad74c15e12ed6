/* SPDX-License-Identifier: MIT
 * location_table.c - see location_table.h. */
#include "location_table.h"

#include <string.h>

enum { FRAMES_MIN = 1024 };

static bool is_in_text(const struct hp_module *module, uintptr_t address) {
  return address >= module->text_start && address < module->text_end;
}

/* The same few modules are asked for again and again: the last answers first. */
static const struct hp_module *find_module(struct hp_location_table *table, uintptr_t address,
                                           const struct hp_module_set *modules) {
  if (modules != table->recent_set) memset(table->recent, 0, sizeof table->recent);
  table->recent_set = modules;
  const struct hp_module *found = NULL;
  size_t i = 0;
  for (; i < HP_RECENT_MODULES && table->recent[i] != NULL; i++) {
    found = table->recent[i];
    if (is_in_text(found, address)) break;
    found = NULL;
  }
  if (found == NULL) {
    found = hp_module_set_find(modules, address);
    if (found == NULL || !is_in_text(found, address)) return NULL;
    if (i == HP_RECENT_MODULES) i--;
  }
  memmove(&table->recent[1], &table->recent[0], i * sizeof table->recent[0]);
  table->recent[0] = found;
  return found;
}

static uint32_t append(struct hp_location_table *table, struct hp_frame frame) {
  if (table->count == table->capacity) {
    uint32_t capacity = table->capacity == 0 ? FRAMES_MIN : table->capacity * 2;
    struct hp_frame *frames = hp_arena_alloc(table->arena, capacity * sizeof frame);
    if (frames == NULL) return HP_FRAME_NONE;
    if (table->count != 0) memcpy(frames, table->frames, table->count * sizeof frame);
    table->frames = frames;
    table->capacity = capacity;
  }
  table->frames[table->count] = frame;
  return table->count++;
}

bool hp_location_table_init(struct hp_location_table *table, struct hp_arena *arena, bool has_sets) {
  static const char *const NAMES[HP_PSEUDO_FRAMES] = {
      [HP_PSEUDO_NO_STACK] = "[no stack]",
      [HP_PSEUDO_TRUNCATED] = "[truncated]",
      [HP_PSEUDO_STACK_TABLE_FULL] = "[stack table full]",
  };
  memset(table, 0, sizeof *table);
  table->arena = arena;
  table->by_pc.arena = arena;
  table->by_address.arena = arena;
  table->has_sets = has_sets;
  for (size_t i = 0; i < HP_PSEUDO_FRAMES; i++) {
    if (append(table, (struct hp_frame){.name = NAMES[i]}) == HP_FRAME_NONE) return false;
  }
  return true;
}

/* The frame of an address that was not met under this pc and set. */
static uint32_t add_address(struct hp_location_table *table, uintptr_t address, const struct hp_module_set *modules) {
  const struct hp_module *module = find_module(table, address, modules);
  uint32_t module_key = module == NULL ? 0 : module->index + 1;
  if (table->has_sets) {
    uint32_t known = hp_pair_map_get(&table->by_address, address, module_key);
    if (known != 0) return known - 1;
  }
  uint32_t number = append(table, (struct hp_frame){.address = address, .module = module});
  if (number == HP_FRAME_NONE || !table->has_sets) return number;
  return hp_pair_map_put(&table->by_address, address, module_key, number + 1) ? number : HP_FRAME_NONE;
}

uint32_t hp_location_table_add(struct hp_location_table *table, uintptr_t pc, const struct hp_module_set *modules) {
  uint32_t set = modules == NULL ? 0 : modules->id;
  uint32_t known = hp_pair_map_get(&table->by_pc, pc, set);
  if (known != 0) return known - 1;
  uint32_t number = add_address(table, pc - 1, modules);
  if (number == HP_FRAME_NONE || !hp_pair_map_put(&table->by_pc, pc, set, number + 1)) return HP_FRAME_NONE;
  return number;
}
