/* SPDX-License-Identifier: MIT
 * fake_memory.c - see fake_memory.h. */
#include "fake_memory.h"

#include "arena.h"
#include "budget.h"

static size_t used_bytes;
static unsigned fail_at;
static bool is_full;

void fake_memory_fail_at(unsigned k) { fail_at = k; }

bool hp_memory_reserve(size_t size) {
  if (fail_at == 1) return false;
  if (fail_at != 0) fail_at--;
  used_bytes += size;
  return true;
}

void hp_memory_release(size_t size) { used_bytes -= size; }

size_t hp_memory_used(void) { return used_bytes; }

void fake_memory_fill(bool fill) { is_full = fill; }

bool hp_memory_is_full(enum hp_memory_part part) {
  (void)part;
  return is_full;
}

/* ---- pieces: put before arena.c by the linker ---- */
void *__real_hp_arena_alloc(struct hp_arena *arena, size_t size);
char *__real_hp_arena_copy(struct hp_arena *arena, const char *bytes, size_t n);
void *__real_hp_arena_zalloc(void *opaque, unsigned items, unsigned size);
void *__wrap_hp_arena_alloc(struct hp_arena *arena, size_t size);
char *__wrap_hp_arena_copy(struct hp_arena *arena, const char *bytes, size_t n);
void *__wrap_hp_arena_zalloc(void *opaque, unsigned items, unsigned size);

static unsigned refused_piece, pieces;

bool fake_memory_refuse_piece(unsigned k) {
  bool has_come = refused_piece != 0 && pieces >= refused_piece;
  refused_piece = k;
  pieces = 0;
  return has_come;
}

static bool is_refused(void) { return ++pieces == refused_piece; }

void *__wrap_hp_arena_alloc(struct hp_arena *arena, size_t size) {
  return is_refused() ? NULL : __real_hp_arena_alloc(arena, size);
}
char *__wrap_hp_arena_copy(struct hp_arena *arena, const char *bytes, size_t n) {
  return is_refused() ? NULL : __real_hp_arena_copy(arena, bytes, n);
}
void *__wrap_hp_arena_zalloc(void *opaque, unsigned items, unsigned size) {
  return is_refused() ? NULL : __real_hp_arena_zalloc(opaque, items, size);
}
