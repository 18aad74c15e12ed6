/* SPDX-License-Identifier: MIT
 * verifying_unwinder.c - the unwinder with a second opinion: every walk that may have used the thread's record is done again
 * without it, and the two are compared word for word. Linked in place of unwinder.c. */
#define hp_unwind hp_unwind_once
#include "unwinder.c"
#undef hp_unwind

#include "verifying_unwinder.h"

size_t hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags);

uint64_t hp_verified_walks;
uint64_t hp_verified_differences;

size_t hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags) {
  uintptr_t again[HP_VERIFIED_FRAMES_MAX];
  size_t n = hp_unwind_once(start, pcs, max, out_flags);
  struct hp_walk walk;
  walk_begin(&walk, start);
  if (max > HP_VERIFIED_FRAMES_MAX) return n;
  size_t m = walk_plain(&walk, again, max, hp_rule_table_load());
  hp_add_relaxed(&hp_verified_walks, 1);
  if (n != m || *out_flags != walk.flags || __builtin_memcmp(pcs, again, n * sizeof(*pcs)) != 0) {
    hp_add_relaxed(&hp_verified_differences, 1);
  }
  return n;
}
