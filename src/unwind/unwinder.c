/* SPDX-License-Identifier: MIT
 * unwinder.c - see unwinder.h. The loop knows two kinds of frames, CFA = sp + n and CFA = fp + n, which are nearly all;
 * everything else is out of line (walk.h). What has not changed since the thread's last recorded walk is not walked but
 * compared and copied (remembered.h).
 *
 *   pc --rule cache--> rule
 *   CFA = sp|fp + n;  pc' = *(CFA - 8);  fp' = *(CFA - m);  sp' = CFA */
#include "unwinder.h"

#include <signal.h>

#include "modules.h"
#include "object_find.h"
#include "object_list.h"
#include "remembered.h"
#include "rule_cache.h"
#include "sys.h"
#include "thread_state.h"
#include "walk.h"

static void walk_begin(struct hp_walk *walk, const struct hp_frame_start *start) {
  walk->key = start->pc;
  walk->sp = start->sp;
  walk->fp = start->fp;
  walk->flags = 0;
  walk->generation = hp_rule_cache_generation();
  walk->signals = 0;
  walk->own_frames = 0;
  walk->interrupted_key = 0;
  walk->has_registers = false;
  hp_stack_enter(walk->sp, &walk->range);
}

enum walk_mode {
  WALK_PLAIN,
  WALK_RECORDING, /* every frame's state goes into the record */
  WALK_REUSING,   /* frames found in the record are taken from it */
};

/* All that is left of the walk, from entry i on, if nothing of it has changed and there is room for it. */
static inline bool take_rest(struct hp_remembered *record, uint32_t i, uintptr_t fp, uintptr_t **out, const uintptr_t *end) {
  if (!hp_remembered_is_rest_unchanged(record, i, fp)) return false;
  size_t first = record->first_reported[i];
  size_t count = record->reported_count - first;
  if (count > (size_t)(end - *out) || count == 0) return false;
  __builtin_memcpy(*out, record->reported + first, count * sizeof(uintptr_t));
  *out += count;
  record->last_tail = (struct hp_hash_tail){.count = count, .sum = record->reported_sum[first]};
  return true;
}

/* The stretch of the record from *at, whose state is the walk's, as far as the slots still hold what they held: its frames
 * are reported, *at becomes the last one reached, which is not reported yet. Returns the new end of the output. */
HP_READS_STACK static inline uintptr_t *take_stretch(const struct hp_remembered_frame **at, uintptr_t *out,
                                                     const uintptr_t *end) {
  const struct hp_remembered_frame *frame = *at;
  for (;; frame++) {
    const struct hp_remembered_frame *next = frame + 1;
    uintptr_t cfa = frame->sp + frame->cfa_distance;
    if (next->sp != cfa || out == end) break;
    const uintptr_t *fp_slot = (const uintptr_t *)(cfa - frame->fp_words * sizeof(uintptr_t));
    if (frame->fp_words == 0) fp_slot = &next->fp;
    if (hp_arch_strip_pc(*(const uintptr_t *)HP_RA_SLOT(cfa, frame->fp_words)) != next->key || *fp_slot != next->fp) break;
    *out = frame->key;
    out += frame->is_reported;
  }
  *at = frame;
  return out;
}

static inline void remember(struct hp_remembered *record, uintptr_t key, uintptr_t sp, uintptr_t fp, uintptr_t cfa,
                            uint64_t rule) {
  uintptr_t distance = cfa - sp;
  hp_remembered_add(record, (struct hp_remembered_frame){
                                .key = key,
                                .sp = sp,
                                .fp = fp,
                                .cfa_distance = distance <= UINT32_MAX ? (uint32_t)distance : 0,
                                .fp_words = (uint16_t)hp_rule_fp_words(rule),
                                .is_reported = hp_rule_kind(rule) <= HP_RULE_FP,
                                .uses_fp = hp_rule_kind(rule) != HP_RULE_SP,
                            });
}

static const uint64_t END_RULE = (uint64_t)HP_RULE_END << HP_RULE_CFA_SHIFT | (uint64_t)HP_RULE_OTHER << HP_RULE_KIND_SHIFT;

/* Around a special step from (key, sp, fp): linked only if it was a plain one on the thread's own stack. */
static HP_NOINLINE void remember_special(const struct hp_walk *walk, struct hp_remembered *record, uint64_t rule,
                                         const struct hp_frame_start *from, bool goes_on) {
  uintptr_t own_end = hp_stack_own_tls.range.hi;
  bool is_linked = goes_on && hp_rule_kind(rule) <= HP_RULE_FP_OWN && walk->range.hi == own_end && walk->sp > from->sp;
  bool is_cut = (walk->flags & (HP_UNWIND_INCOMPLETE | HP_UNWIND_TRUNCATED)) != 0;
  /* Other ends depend on more than the state: whether a signal interrupted the frame. */
  bool is_end = !goes_on && !is_cut && (from->pc == 0 || rule >> HP_RULE_KIND_SHIFT == END_RULE >> HP_RULE_KIND_SHIFT);
  if (from->sp >= own_end) return;
  hp_remembered_add(record,
                    (struct hp_remembered_frame){
                        .key = from->pc,
                        .sp = from->sp,
                        .fp = from->fp,
                        .cfa_distance = is_linked && walk->sp - from->sp <= UINT32_MAX ? (uint32_t)(walk->sp - from->sp) : 0,
                        .fp_words = (uint16_t)hp_rule_fp_words(rule),
                        .is_reported = is_linked ? hp_rule_kind(rule) <= HP_RULE_FP : from->pc != 0,
                        .is_end = is_end,
                        .uses_fp = hp_rule_kind(rule) != HP_RULE_SP && hp_rule_kind(rule) != HP_RULE_SP_OWN,
                    });
}

HP_READS_STACK static inline __attribute__((always_inline)) size_t walk_stack(struct hp_walk *walk, uintptr_t *pcs,
                                                                              size_t max, const struct hp_rule_table *table,
                                                                              enum walk_mode mode,
                                                                              struct hp_remembered *record) {
  const uint64_t index_mask = table->index_mask;
  const uint64_t *const first = table->first;
  const struct hp_remembered_frame *at = mode == WALK_REUSING ? record->frames : NULL;
  size_t copied = 0;
  size_t rest = 0;
  uintptr_t *out = pcs;
  uintptr_t *const end = pcs + max;
  uintptr_t key = walk->key;
  uintptr_t sp = walk->sp;
  uintptr_t fp = walk->fp;
  walk->begin = pcs;
  walk->end = end;
  for (;;) {
    if (mode == WALK_REUSING) {
      while (at->sp < sp) at++;
      bool is_met = at->sp == sp && at->key == key;
      const uintptr_t *before = out;
      if (is_met && take_rest(record, (uint32_t)(at - record->frames), fp, &out, end)) {
        walk->flags |= HP_UNWIND_HAS_TAIL;
        rest = (size_t)(out - before);
        break;
      }
      if (is_met && at->fp == fp) {
        out = take_stretch(&at, out, end);
        copied += (size_t)(out - before);
        if (HP_LIKELY(at->is_end && out != end)) {
          *out = at->key;
          out += at->is_reported;
          break;
        }
        key = at->key;
        sp = at->sp;
        fp = at->fp;
        at++;
      }
    }
    size_t index = hp_rule_index(key, index_mask);
    uint64_t rule = hp_load_relaxed(&first[index]);
    if (HP_UNLIKELY(!hp_rule_matches(rule, key))) {
      rule = hp_load_relaxed(&table->second[index]);
      if (!hp_rule_matches(rule, key)) rule = hp_walk_read_rule(walk, key);
    }
    uintptr_t cfa = sp + hp_rule_cfa_bytes(rule);
    uintptr_t fp_words = hp_rule_fp_words(rule);
    if (hp_rule_kind(rule) != HP_RULE_SP) {
      cfa =
          hp_rule_kind(rule) == HP_RULE_FP && fp % sizeof(uintptr_t) == 0 ? fp + hp_rule_cfa_bytes(rule) : 0; /* 0: below */
    }
    uintptr_t fp_slot = cfa - fp_words * sizeof(uintptr_t);
    if (HP_UNLIKELY(cfa <= sp || cfa > walk->range.hi || fp_slot < walk->range.lo || out == end)) {
      walk->key = key;
      walk->sp = sp;
      walk->fp = fp;
      walk->out = out;
      bool goes_on = hp_walk_step_special(walk, rule);
      if (mode == WALK_RECORDING) {
        struct hp_frame_start from = {.pc = key, .sp = sp, .fp = fp};
        remember_special(walk, record, rule, &from, goes_on);
      }
      out = walk->out;
      if (!goes_on) break;
      key = walk->key;
      sp = walk->sp;
      fp = walk->fp;
      continue;
    }
    if (mode == WALK_RECORDING) remember(record, key, sp, fp, walk->range.hi == hp_stack_own_tls.range.hi ? cfa : sp, rule);
    *out++ = key;
    key = hp_arch_strip_pc(*(const uintptr_t *)HP_RA_SLOT(cfa, fp_words));
    if (fp_words != 0) fp = *(const uintptr_t *)fp_slot;
    sp = cfa;
  }
  size_t total = (size_t)(out - pcs);
  if (mode == WALK_REUSING) hp_remembered_judge(record, total, copied + rest, rest);
  return total;
}

HP_READS_STACK static HP_NOINLINE size_t walk_recording(struct hp_walk *walk, uintptr_t *pcs, size_t max,
                                                        const struct hp_rule_table *table, struct hp_remembered *record) {
  hp_remembered_begin(record, walk->generation);
  size_t n = walk_stack(walk, pcs, max, table, WALK_RECORDING, record);
  hp_remembered_end(record);
  return n;
}

HP_READS_STACK static HP_NOINLINE size_t walk_plain(struct hp_walk *walk, uintptr_t *pcs, size_t max,
                                                    const struct hp_rule_table *table) {
  return walk_stack(walk, pcs, max, table, WALK_PLAIN, NULL);
}

/* The stack that this thread had the last time it was here. */
static inline size_t repeat_stack(struct hp_remembered *record, struct hp_repeat *entry, uintptr_t *pcs) {
  size_t n = entry->frame_count;
  __builtin_memcpy(pcs, entry->frames, n * sizeof(uintptr_t));
  record->last_memo = &entry->memo;
  record->last_tail = (struct hp_hash_tail){.count = n, .sum = entry->sum};
  hp_store_relaxed(&record->reuses, record->reuses + 1);
  return n;
}

HP_READS_STACK static size_t walk_once(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags) {
  const struct hp_rule_table *table = hp_rule_table_load();
  struct hp_walk walk;
  walk_begin(&walk, start);
  size_t n;
  struct hp_remembered *record = NULL;
  /* Elsewhere than on the thread's own stack slots cannot be read unchecked; without a table rules are not to be trusted. */
  bool is_own_stack = walk.range.hi == hp_stack_own_tls.range.hi;
  if (is_own_stack && !hp_rule_table_is_empty(table)) record = hp_remembered_get();
  if (record == NULL) {
    n = walk_plain(&walk, pcs, max, table);
  } else {
    struct hp_repeats *repeats = hp_remembered_repeats(record);
    struct hp_repeat *entry = repeats != NULL ? hp_repeats_find(repeats, start) : NULL;
    if (entry != NULL && hp_repeat_holds(entry, start, walk.generation, max)) {
      *out_flags = HP_UNWIND_REPEATED | HP_UNWIND_HAS_TAIL;
      return repeat_stack(record, entry, pcs);
    }
    bool is_due = entry != NULL && hp_repeat_is_due(entry);
    if (is_due || record->is_due || record->generation != walk.generation) {
      n = walk_recording(&walk, pcs, max, table, record);
      if (is_due) hp_repeat_fill(entry, record);
    } else {
      n = walk_stack(&walk, pcs, max, table, WALK_REUSING, record);
    }
  }
  *out_flags = walk.flags;
  return n;
}

size_t hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags) {
  unsigned flags;
  size_t n = walk_once(start, pcs, max, &flags);
  if (HP_UNLIKELY(flags & HP_UNWIND_MODULES_DIED)) {
    /* A library has gone without our knowing: some rules of this walk may have been its, not of who is there now. */
    n = walk_once(start, pcs, max, &flags);
    flags |= HP_UNWIND_MODULES_DIED;
  }
  *out_flags = flags;
  return n;
}

/* ---- the rest of the interface ---- */

struct hp_memo *hp_unwind_memo(void) {
  return hp_remembered_tls.record->last_memo;
}
struct hp_hash_tail hp_unwind_tail(void) {
  return hp_remembered_tls.record->last_tail;
}

void hp_unwind_flush(void) { hp_rule_cache_flush(hp_modules_epoch()); }

HP_READS_STACK bool hp_unwind_was_left(uintptr_t frame, uintptr_t return_word, uintptr_t alive) {
  enum { BELOW_KNOWN_BYTES = 8192 }; /* frames of ours below the last start of a walk */
  const struct hp_stack_range *own = &hp_stack_own_tls.range;
  if (alive - own->lo >= own->hi - own->lo || frame >= own->hi || frame + BELOW_KNOWN_BYTES < own->lo) return false;
  if (alive < frame && ((const uintptr_t *)frame)[1] == return_word) return false;
  stack_t alternate; /* may be a piece of the own one */
  if (hp_syscall2(SYS_sigaltstack, NULL, &alternate) != 0 || (alternate.ss_flags & SS_ONSTACK) != 0) return false;
  hp_remembered_forget();
  return true;
}

static __thread uint32_t own_unloads HP_TLS; /* this thread is in so many dlcloses */

static bool has_missed_unload; /* of who holds all locks */

void hp_unwind_before_unload(void) {
  if (HP_UNLIKELY(hp_thread.holds_all_locks != 0)) {
    has_missed_unload = true;
    return;
  }
  own_unloads++;
  hp_rule_cache_suspend();
  hp_object_find_suspend();
}

bool hp_unwind_after_unload(void) {
  if (HP_UNLIKELY(hp_thread.holds_all_locks != 0)) return false;
  bool can_look = hp_object_find_resume(); /* if not, another thread is about to */
  bool died = can_look && hp_modules_check();
  hp_rule_cache_resume(hp_modules_epoch());
  own_unloads--;
  return died;
}

void hp_unwind_catch_up(void) {
  if (HP_LIKELY(!has_missed_unload)) return;
  has_missed_unload = false;
  hp_unwind_before_unload();
  hp_unwind_after_unload();
}

void hp_unwind_after_fork(void) {
  hp_rule_cache_after_fork(own_unloads);
  hp_object_find_after_fork(own_unloads);
}

void hp_unwind_get_stats(struct hp_unwind_stats *out) {
  out->rule_misses = hp_load_relaxed(&hp_walk_counters.rule_misses);
  out->slow_walks = hp_load_relaxed(&hp_walk_counters.slow_frames);
  size_t record_bytes;
  hp_remembered_get_stats(&out->prefix_reuses, &record_bytes);
  out->cache_bytes = hp_rule_cache_bytes() + record_bytes;
}

void hp_unwind_lock_all(void) {
  hp_modules_lock();
  hp_rule_cache_lock();
  hp_object_list_lock();
}

void hp_unwind_unlock_all(void) {
  hp_object_list_unlock();
  hp_rule_cache_unlock();
  hp_modules_unlock();
}
