/* SPDX-License-Identifier: MIT
 * walk_compare.c - see walk_compare.h. */
#include "walk_compare.h"

#include "arch.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stdio.h>
#include <unistd.h>

uint64_t walk_comparisons;
uint64_t walk_differences;

size_t walk_ours(uintptr_t *pcs, size_t max, unsigned *out_flags) {
  struct hp_frame_start start = HP_FRAME_START();
  size_t n = hp_unwind(&start, pcs, max, out_flags);
  __asm__ volatile("");
  return n;
}

/* One step; was the frame that it left a signal frame? On x86-64 libunwind knows that of the frame it has just left, on
 * aarch64 of the one it is at, and then it reads the instructions there: never ask it behind the outermost frame. */
static int step_theirs(unw_cursor_t *cursor, bool *out_left_signal) {
#if defined(__aarch64__)
  *out_left_signal = unw_is_signal_frame(cursor) > 0;
  return unw_step(cursor);
#else
  int result = unw_step(cursor);
  *out_left_signal = unw_is_signal_frame(cursor) > 0;
  return result;
#endif
}

/* libunwind on aarch64 tells the root of a stack made by makecontext twice: its last step leads nowhere. */
static bool has_moved(unw_cursor_t *cursor, unw_word_t *sp) {
#if defined(__aarch64__)
  unw_word_t before = *sp;
  return unw_get_reg(cursor, UNW_REG_SP, sp) == 0 && *sp != before;
#else
  (void)cursor, (void)sp;
  return true;
#endif
}

static HP_NOINLINE size_t walk_theirs(uintptr_t *pcs, size_t max, int *out_end) {
  unw_context_t context;
  unw_cursor_t cursor;
  size_t n = 0;
  unw_word_t sp = 0;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  for (;;) {
    bool is_signal = false;
    *out_end = step_theirs(&cursor, &is_signal);
    unw_word_t pc;
    if (*out_end <= 0 || n == max || unw_get_reg(&cursor, UNW_REG_IP, &pc) != 0 || pc == 0) break;
    if (!has_moved(&cursor, &sp) && n > 0 && pcs[n - 1] == pc) break;
    pcs[n++] = pc + (is_signal ? HP_PC_STEP : 0); /* our convention for an interrupted frame */
  }
  return n;
}

void walk_both(struct walk_pair *out) {
  uintptr_t all[WALK_MAX + 1];
  struct hp_frame_start start = HP_FRAME_START();
  out->ours_count = hp_unwind(&start, out->ours, WALK_MAX, &out->flags);
  out->theirs_count = walk_theirs(all, WALK_MAX + 1, &out->theirs_end);
  if (out->theirs_count > 0) out->theirs_count--; /* this function's own frame */
  for (size_t i = 0; i < out->theirs_count; i++) out->theirs[i] = all[i + 1];
  __asm__ volatile("");
}

static void show(const struct walk_pair *pair) {
  char line[128];
  size_t most = pair->ours_count > pair->theirs_count ? pair->ours_count : pair->theirs_count;
  int n = snprintf(line, sizeof(line), "ours %zu (flags %u), theirs %zu (end %d)\n", pair->ours_count, pair->flags,
                   pair->theirs_count, pair->theirs_end);
  if (write(2, line, (size_t)n) < 0) return;
  for (size_t i = 0; i < most && i < 40; i++) {
    n = snprintf(line, sizeof(line), "  %2zu %16lx %16lx\n", i, i < pair->ours_count ? pair->ours[i] : 0,
                 i < pair->theirs_count ? pair->theirs[i] : 0);
    if (write(2, line, (size_t)n) < 0) return;
  }
}

/* libunwind 1.8 (Debian 13's; 1.6 does not) leaves the outermost frame out on aarch64. */
static bool lacks_root(const struct walk_pair *pair) {
#if defined(__aarch64__) && UNW_VERSION >= UNW_VERSION_CODE(1, 7)
  return pair->theirs_end == 0 && pair->theirs_count + 1 == pair->ours_count;
#else
  (void)pair;
  return false;
#endif
}

bool walk_pair_check(const struct walk_pair *pair) {
  bool is_equal = (pair->ours_count == pair->theirs_count || lacks_root(pair)) && (pair->flags & HP_UNWIND_INCOMPLETE) == 0;
  for (size_t i = 0; is_equal && i < pair->theirs_count; i++) is_equal = pair->ours[i] == pair->theirs[i];
  hp_add_relaxed(&walk_comparisons, 1);
  if (!is_equal && hp_add_relaxed(&walk_differences, 1) < 3) show(pair);
  return is_equal;
}

bool walk_check(void) {
  struct walk_pair pair;
  walk_both(&pair);
  return walk_pair_check(&pair);
}
