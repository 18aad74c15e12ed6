/* SPDX-License-Identifier: MIT
 * budget.c - see budget.h. */
#include "budget.h"

static size_t ceiling_bytes = SIZE_MAX; /* written once at start-up */
static unsigned tables_eighths = 4;     /* the same */
static size_t used_bytes;               /* atomic */

void hp_memory_set_ceiling(size_t bytes) { hp_store_relaxed(&ceiling_bytes, bytes); }

void hp_memory_set_tables_eighths(unsigned eighths) { hp_store_relaxed(&tables_eighths, eighths); }

size_t hp_memory_used(void) { return hp_load_relaxed(&used_bytes); }

bool hp_memory_reserve(size_t size) {
  size_t before = hp_add_relaxed(&used_bytes, size);
  if (before + size <= hp_load_relaxed(&ceiling_bytes) && before + size >= before) return true;
  hp_memory_release(size);
  return false;
}

void hp_memory_add(size_t size) { hp_add_relaxed(&used_bytes, size); }

void hp_memory_release(size_t size) { __atomic_fetch_sub(&used_bytes, size, __ATOMIC_RELAXED); }

bool hp_memory_is_full(enum hp_memory_part part) {
  size_t ceiling = hp_load_relaxed(&ceiling_bytes);
  size_t most = ceiling / 8 * 5;
  size_t dump = most < HP_DUMP_BYTES ? most : HP_DUMP_BYTES;
  size_t tables = (ceiling - dump) / 8 * hp_load_relaxed(&tables_eighths);
  size_t limit = part == HP_MEMORY_NAMES ? ceiling - ceiling / 8 : part == HP_MEMORY_TABLES ? tables : tables - tables / 4;
  return hp_memory_used() >= limit;
}
