/* SPDX-License-Identifier: MIT
 * module_set.c - see module_set.h.    chains[hash] -> set -> set ...        directory[id / PAGE_SETS][id % PAGE_SETS] = set */
#include "module_set.h"

#include <string.h>

#include "hash.h"
#include "modules.h"

enum { CHAINS = 256, PAGE_SETS = 256, PAGES = 512, FIRST_ID = HP_MODULE_SET_UNKNOWN + 1 };

static const struct hp_module_set unknown = {.id = HP_MODULE_SET_UNKNOWN};
static const struct hp_module_set *chains[CHAINS]; /* under the modules' lock */
static const struct hp_module_set **directory[PAGES];
static uint32_t next_id = FIRST_ID; /* under the modules' lock */

/* Room for the next id, or NULL. */
static const struct hp_module_set **make_slot(struct hp_arena *arena) {
  if (next_id / PAGE_SETS == PAGES) return NULL;
  const struct hp_module_set ***page = &directory[next_id / PAGE_SETS];
  if (*page == NULL) {
    const struct hp_module_set **fresh = hp_arena_alloc(arena, PAGE_SETS * sizeof *fresh);
    if (fresh == NULL) return NULL;
    hp_store_release(page, fresh);
  }
  return &(*page)[next_id % PAGE_SETS];
}

uint32_t hp_module_set_keep_locked(struct hp_arena *arena, const struct hp_module *const *modules, uint32_t count) {
  size_t bytes = count * sizeof modules[0];
  const struct hp_module_set **chain = &chains[hp_hash_words((const uintptr_t *)(const void *)modules, count, 0) % CHAINS];
  for (const struct hp_module_set *set = *chain; set != NULL; set = set->next) {
    if (set->count == count && memcmp(set->modules, modules, bytes) == 0) return set->id;
  }
  const struct hp_module_set **slot = make_slot(arena);
  struct hp_module_set *fresh = slot == NULL ? NULL : hp_arena_alloc(arena, sizeof *fresh + bytes);
  if (fresh == NULL) return HP_MODULE_SET_UNKNOWN;
  fresh->id = next_id++;
  fresh->count = count;
  fresh->next = *chain;
  if (count != 0) memcpy(fresh->modules, modules, bytes);
  *slot = fresh; /* readers have the id from a release store of the caller's */
  *chain = fresh;
  return fresh->id;
}

const struct hp_module_set *hp_module_set_get(uint32_t id) {
  if (id == HP_MODULE_SET_UNKNOWN) return &unknown;
  return hp_load_acquire(&directory[id / PAGE_SETS])[id % PAGE_SETS];
}

const struct hp_module *hp_module_set_find(const struct hp_module_set *set, uintptr_t address) {
  for (uint32_t i = 0; set != NULL && i < set->count; i++) {
    if (address >= set->modules[i]->map_start && address < set->modules[i]->map_end) return set->modules[i];
  }
  return NULL;
}
