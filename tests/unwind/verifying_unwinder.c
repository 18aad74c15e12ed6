/* SPDX-License-Identifier: MIT
 * verifying_unwinder.c - the unwinder with a second opinion: every walk that may have used the thread's record is done again
 * without it, and the two are compared word for word. Linked in place of unwinder.c. */
#define hp_unwind hp_unwind_once
#include "unwinder.c"
#undef hp_unwind

#include "hash.h"
#include "verifying_unwinder.h"

size_t hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags);

uint64_t hp_verified_walks;
uint64_t hp_verified_differences;
uint64_t hp_verified_memos;

static void verify_tail(const uintptr_t *pcs, size_t n) {
  struct hp_hash_tail tail = hp_unwind_tail();
  bool is_right = tail.count <= n && tail.sum == hp_hash_sum(pcs + n - tail.count, tail.count, 0);
  if (!is_right) hp_add_relaxed(&hp_verified_differences, 1);
}

/* All walks that find one memo non-empty returned the same stack. */
static void verify_memo(const uintptr_t *pcs, size_t n) {
  struct hp_memo *memo = hp_unwind_memo();
  uint64_t key = hp_hash_words(pcs, n, n);
  if (memo->value != NULL && memo->key != key) hp_add_relaxed(&hp_verified_differences, 1);
  hp_add_relaxed(&hp_verified_memos, memo->value != NULL);
  *memo = (struct hp_memo){.value = memo, .key = key};
}

size_t hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags) {
  uintptr_t again[HP_VERIFIED_FRAMES_MAX];
  size_t n = hp_unwind_once(start, pcs, max, out_flags);
  if ((*out_flags & HP_UNWIND_REPEATED) != 0) verify_memo(pcs, n);
  if ((*out_flags & HP_UNWIND_HAS_TAIL) != 0) verify_tail(pcs, n);
  struct hp_walk walk;
  walk_begin(&walk, start);
  if (max > HP_VERIFIED_FRAMES_MAX) return n;
  size_t m = walk_plain(&walk, again, max, hp_rule_table_load());
  hp_add_relaxed(&hp_verified_walks, 1);
  /* A death is found once, by the first of the two. */
  unsigned flags = *out_flags & ~(unsigned)(HP_UNWIND_HINTS | HP_UNWIND_MODULES_DIED);
  if (n != m || flags != (walk.flags & ~(unsigned)HP_UNWIND_MODULES_DIED) ||
      __builtin_memcmp(pcs, again, n * sizeof(*pcs)) != 0) {
    hp_add_relaxed(&hp_verified_differences, 1);
  }
  return n;
}
