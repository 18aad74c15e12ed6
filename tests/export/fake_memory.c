/* SPDX-License-Identifier: MIT
 * fake_memory.c - see fake_memory.h. */
#include "fake_memory.h"

static size_t used_bytes;
static unsigned fail_at;

void fake_memory_fail_at(unsigned k) { fail_at = k; }

bool hp_memory_reserve(size_t size) {
  if (fail_at == 1) return false;
  if (fail_at != 0) fail_at--;
  used_bytes += size;
  return true;
}

void hp_memory_release(size_t size) { used_bytes -= size; }

size_t hp_memory_used(void) { return used_bytes; }
