/* SPDX-License-Identifier: MIT
 * budget.c - see budget.h. */
#include "budget.h"

static size_t ceiling_bytes = SIZE_MAX; /* written once at start-up */
static size_t used_bytes;               /* atomic */

void hp_memory_set_ceiling(size_t bytes) { hp_store_relaxed(&ceiling_bytes, bytes); }

size_t hp_memory_used(void) { return hp_load_relaxed(&used_bytes); }

bool hp_memory_reserve(size_t size) {
  size_t before = hp_add_relaxed(&used_bytes, size);
  if (before + size <= hp_load_relaxed(&ceiling_bytes) && before + size >= before) return true;
  hp_memory_release(size);
  return false;
}

void hp_memory_add(size_t size) { hp_add_relaxed(&used_bytes, size); }

void hp_memory_release(size_t size) { __atomic_fetch_sub(&used_bytes, size, __ATOMIC_RELAXED); }

bool hp_memory_above_eighths(unsigned eighths) { return hp_memory_used() / eighths >= hp_load_relaxed(&ceiling_bytes) / 8; }
