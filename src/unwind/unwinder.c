/* SPDX-License-Identifier: MIT
 * unwinder.c - see unwinder.h. The loop of hp_unwind knows two kinds of frames, CFA = sp + n and CFA = fp + n, which are
 * nearly all; everything else is in step_special, out of line.
 *
 *   pc --rule cache--> rule        a miss: modules.h names the object, cfi.h reads its table, rule.h packs the row
 *   CFA = sp|fp + n;  pc' = *(CFA - 8);  fp' = *(CFA - m);  sp' = CFA
 *
 * Every word is read only after a comparison with the range of stack known to be mapped (stack_bounds.h); CFAs grow strictly,
 * but for signal frames, whose number is bounded: so every walk ends.
 * Locks    the rule cache's try-lock and that of modules.h on a miss; none otherwise. */
#include "unwinder.h"

#include "lock.h"
#include "modules.h"
#include "object_find.h"
#include "remembered.h"
#include "rule_cache.h"
#include "slow_step.h"
#include "stack_bounds.h"

enum {
  HP_WALK_PC_MIN = 4096, /* no code below, and no tag of the cache */
  HP_WALK_SIGNALS_MAX = 64,
  HP_WALK_OWN_FRAMES_MAX = 64,
  HP_WALK_SLOW_FRAMES_MAX = 2 * HP_STACK_WORDS_MAX, /* frames stepped again from the bottom for one slow one */
};

struct walk {
  uintptr_t key; /* return address into the current frame; its pc + HP_PC_STEP when it was interrupted there by a signal */
  uintptr_t sp;
  uintptr_t fp;
  struct hp_stack_range range;
  unsigned flags;
  uint32_t generation;
  unsigned signals;
  unsigned own_frames;
  uintptr_t *out; /* where the next frame is reported */
  const uintptr_t *end;
  const uintptr_t *begin;
  uintptr_t interrupted_key; /* of the last frame found interrupted by a signal */
  bool has_registers;  /* of a frame further down: the next slow frame is reached from there */
  uintptr_t registers_address;
  struct hp_registers registers;
};

static struct hp_unwind_stats stats; /* atomic counters */

/* heapprof's own text; empty until first asked for, and when the unwinder is linked into the program itself. */
static struct {
  uintptr_t start;
  uintptr_t end; /* stored last */
} own_text;

static bool is_own_text(uintptr_t pc) {
  uintptr_t end = hp_load_acquire(&own_text.end);
  if (HP_UNLIKELY(end == 0)) {
    struct hp_object object;
    if (!hp_object_find((uintptr_t)&hp_unwind, &object)) return false;
    hp_object_describe(&object);
    hp_store_relaxed(&own_text.start, object.map_start);
    end = object.name[0] != 0 ? object.map_end : 1;
    hp_store_release(&own_text.end, end);
  }
  return pc < end && pc >= hp_load_relaxed(&own_text.start);
}

/* Are there n readable bytes of code at this address? */
static bool is_readable(uintptr_t address, size_t n) {
  uintptr_t first = address & ~(uintptr_t)7;
  uintptr_t last = (address + n - 1) & ~(uintptr_t)7;
  return last >= first && hp_stack_probe(first) && (first == last || hp_stack_probe(last));
}

HP_READS_STACK static bool is_after_call(uintptr_t pc) {
  uint8_t before[8];
  if (pc < sizeof(before) || !is_readable(pc - sizeof(before), sizeof(before))) return false;
  for (size_t i = 0; i < sizeof(before); i++) before[i] = ((const uint8_t *)(pc - sizeof(before)))[i];
  return hp_arch_is_after_call(before);
}

/* A function that begins right at a return address was not called into: somebody put it there as the root of a stack made by
 * hand (makecontext does). Unless the last instruction before is a call that never returns. */
static bool is_root_entry(const struct hp_cfi_tables *tables, uintptr_t pc) {
  struct hp_cfi_row row;
  return hp_cfi_find_row(tables, pc, &row) == HP_CFI_FOUND && row.function_start == pc && !is_after_call(pc);
}

static uint64_t read_rule_of(const struct hp_module *module, uintptr_t key) {
  uintptr_t address = key - HP_PC_STEP;
  struct hp_cfi_row row;
  bool is_found = hp_cfi_find_row(&module->tables, address, &row) == HP_CFI_FOUND;
  if ((!is_found || row.function_end <= key) && is_root_entry(&module->tables, key)) return hp_rule_make_other(HP_RULE_END);
  if (!is_found) return hp_rule_make_other(HP_RULE_NO_DATA);
  uint64_t rule = hp_rule_from_row(&module->tables, &row, address);
  if (hp_rule_kind(rule) <= HP_RULE_FP && is_own_text(address)) rule |= hp_rule_make(HP_RULE_SP_OWN, 0, 0);
  return rule;
}

/* The rule of a key that is not cached, with tag bits 0. */
static HP_NOINLINE uint64_t read_rule(struct walk *walk, uintptr_t key) {
  bool died = false;
  hp_add_relaxed(&stats.rule_misses, 1);
  const struct hp_module *module = hp_modules_note(key - HP_PC_STEP, &died);
  if (died) {
    walk->flags |= HP_UNWIND_MODULES_DIED;
    hp_rule_cache_flush(hp_modules_epoch());
    walk->generation = hp_rule_cache_generation();
  }
  if (module == NULL) return hp_rule_make_other(HP_RULE_NO_OBJECT);
  uint64_t rule = read_rule_of(module, key);
  hp_rule_cache_insert(key, rule, walk->generation);
  return rule;
}

/* ---- frames that the loop does not know ---- */

static bool read_word(struct walk *walk, uintptr_t address, uintptr_t *out) {
  return hp_stack_read(&walk->range, address, out);
}

/* Returns to (pc, sp, fp) in the caller. */
static bool return_to(struct walk *walk, uintptr_t pc, uintptr_t sp, uintptr_t fp) {
  walk->key = hp_arch_strip_pc(pc);
  walk->sp = sp;
  walk->fp = fp;
  return true;
}

/* CFA and fp as the rule says; both plain kinds and gcc's and OpenSSL's realigned frames. */
static bool step_by_rule(struct walk *walk, uint64_t rule) {
  uintptr_t fp_words = hp_rule_fp_words(rule);
  uintptr_t distance = hp_rule_cfa_bytes(rule);
  uintptr_t cfa;
  uintptr_t pc;
  uintptr_t fp = walk->fp;
  switch (hp_rule_kind(rule)) {
    case HP_RULE_SP: case HP_RULE_SP_OWN: cfa = walk->sp + distance; break;
    case HP_RULE_FP: case HP_RULE_FP_OWN: cfa = walk->fp + distance; break;
    case HP_RULE_FP_MEMORY:
      if (walk->fp < walk->sp || !read_word(walk, walk->fp - distance, &cfa) || !read_word(walk, walk->fp, &fp)) return false;
      break;
    default:
      if (!read_word(walk, walk->sp + distance, &cfa)) return false;
      cfa += sizeof(uintptr_t);
  }
  if (cfa <= walk->sp) {
    /* A frame that ran its callees on a stack of its own making (once a walk: from there on the stack is the thread's). */
    if (!hp_stack_is_way_home(walk->sp, cfa)) return false;
    hp_stack_enter_jump(HP_RA_SLOT(cfa, fp_words), &walk->range);
  }
  if (!read_word(walk, HP_RA_SLOT(cfa, fp_words), &pc)) return false;
  if (fp_words != 0 && !read_word(walk, cfa - fp_words * sizeof(uintptr_t), &fp)) return false;
  return return_to(walk, pc, cfa, fp);
}

/* Out of a signal handler: pc is exact, sp is on whatever stack the thread was on. */
static bool step_signal(struct walk *walk) {
  uintptr_t pc, sp, fp;
  if (++walk->signals > HP_WALK_SIGNALS_MAX) return false;
  if (!read_word(walk, walk->sp + HP_SIGNAL_PC_OFFSET, &pc) || !read_word(walk, walk->sp + HP_SIGNAL_SP_OFFSET, &sp) ||
      !read_word(walk, walk->sp + HP_SIGNAL_FP_OFFSET, &fp)) {
    return false;
  }
  walk->key = hp_arch_strip_pc(pc) + HP_PC_STEP;
  walk->interrupted_key = walk->key;
  walk->sp = sp;
  walk->fp = fp;
  hp_stack_enter_jump(sp, &walk->range);
  return true;
}

HP_READS_STACK static bool is_restorer(uintptr_t pc) {
  static const uint8_t expected[HP_RESTORER_BYTES] = HP_RESTORER_CODE;
  if (!is_readable(pc, HP_RESTORER_BYTES)) return false;
  for (size_t i = 0; i < HP_RESTORER_BYTES; i++) {
    if (((const uint8_t *)pc)[i] != expected[i]) return false;
  }
  return true;
}

/* A frame without unwind data (generated code): a signal restorer of somebody's own, or a frame that keeps the frame-pointer
 * chain. Believed only if the word above the saved frame pointer is an address behind a call instruction. */
static bool step_without_data(struct walk *walk) {
  uintptr_t pc, fp;
  if (is_restorer(walk->key)) return step_signal(walk);
  if (walk->fp < walk->sp || walk->fp % sizeof(uintptr_t) != 0) return false;
  if (!read_word(walk, walk->fp, &fp) || !read_word(walk, walk->fp + sizeof(uintptr_t), &pc)) return false;
  pc = hp_arch_strip_pc(pc);
  if (!is_after_call(pc)) return false;
  return return_to(walk, pc, walk->fp + 2 * sizeof(uintptr_t), fp);
}

/* Outside all objects: could code be there at all? What a signal interrupted and what called us is believed. */
static bool is_plausible_code(const struct walk *walk) {
  return walk->out == walk->begin || walk->key == walk->interrupted_key || is_after_call(walk->key) || is_restorer(walk->key);
}

/* One step with all registers from the frame looked up by *address to the caller's. */
static bool step_registers(struct walk *walk, struct hp_stack_range *range, uintptr_t *address) {
  bool died = false; /* the same objects as on the way here: none can have died since */
  bool was_signal_frame = false;
  const struct hp_module *module = hp_modules_note(*address, &died);
  if (module == NULL) return false;
  if (!hp_slow_step(&module->tables, *address, &walk->registers, range, &was_signal_frame)) return false;
  *address = walk->registers.pc - (was_signal_frame ? 0 : HP_PC_STEP);
  if (was_signal_frame) {
    if (++walk->signals > HP_WALK_SIGNALS_MAX) return false;
    hp_stack_enter_jump(walk->registers.value[HP_REG_SP], range);
  }
  return true;
}

/* Every register of the walk's current frame: the stack is stepped through again, from here or from the last slow frame, up to
 * that frame. False: not reached (a frame without data in between, or a walk that did not begin on this stack). */
static HP_NOINLINE bool recover_registers(struct walk *walk) {
  struct hp_registers *registers = &walk->registers;
  uintptr_t address = walk->registers_address;
  if (!walk->has_registers) {
    HP_ARCH_CAPTURE(registers->value, registers->known, registers->pc);
    address = registers->pc;
  }
  struct hp_stack_range range;
  hp_stack_enter(registers->value[HP_REG_SP], &range);
  for (int i = 0; i < HP_WALK_SLOW_FRAMES_MAX; i++) {
    if (address == walk->key - HP_PC_STEP && registers->value[HP_REG_SP] == walk->sp) return true;
    if (!step_registers(walk, &range, &address)) return false;
  }
  return false;
}

static HP_NOINLINE bool step_slow(struct walk *walk) {
  struct hp_registers *registers = &walk->registers;
  hp_add_relaxed(&stats.slow_walks, 1);
  if (!recover_registers(walk)) {
    registers->value[HP_REG_SP] = walk->sp;
    registers->value[HP_REG_FP] = walk->fp;
    registers->known = 1u << HP_REG_SP | 1u << HP_REG_FP;
    registers->pc = walk->key;
  }
  uintptr_t address = walk->key - HP_PC_STEP;
  walk->has_registers = false;
  unsigned signals = walk->signals;
  if (!step_registers(walk, &walk->range, &address)) return false;
  /* A frame may own no stack (the end of longjmp), but it must lead somewhere else. */
  bool is_further = registers->value[HP_REG_SP] > walk->sp ||
                    (registers->value[HP_REG_SP] == walk->sp && address != walk->key - HP_PC_STEP);
  if (!is_further && walk->signals == signals) return false;
  walk->has_registers = true;
  walk->registers_address = address;
  walk->key = address + HP_PC_STEP;
  if (walk->signals != signals) walk->interrupted_key = walk->key;
  walk->sp = registers->value[HP_REG_SP];
  walk->fp = registers->known >> HP_REG_FP & 1 ? registers->value[HP_REG_FP] : 0;
  return true;
}

enum step_result { STEP_GOES_ON, STEP_ENDS, STEP_FAILS };

static enum step_result step_other(struct walk *walk, uint64_t rule) {
  bool goes_on;
  switch (hp_rule_cfa_bytes(rule)) {
    case HP_RULE_END: return STEP_ENDS;
    case HP_RULE_SLOW: goes_on = step_slow(walk); break;
    default:
      /* A frame register of 0 marks the outermost frame (the ABI's convention; the loader's entry has no table). */
      if (walk->fp == 0 && !is_restorer(walk->key)) return STEP_ENDS;
      goes_on = step_without_data(walk);
  }
  return goes_on ? STEP_GOES_ON : STEP_FAILS;
}

/* One frame that the loop does not know, or whose words are not in the known range. False: the walk ends here. */
static HP_NOINLINE bool step_special(struct walk *walk, uint64_t rule) {
  if (walk->key < HP_WALK_PC_MIN) {
    if (walk->key != 0) walk->flags |= HP_UNWIND_INCOMPLETE; /* 0: the bottom of a stack made by hand */
    return false;
  }
  unsigned kind = hp_rule_kind(rule);
  if (kind == HP_RULE_OTHER && hp_rule_cfa_bytes(rule) == HP_RULE_NO_OBJECT && !is_plausible_code(walk)) {
    walk->flags |= HP_UNWIND_INCOMPLETE;
    return false;
  }
  bool is_own = kind == HP_RULE_SP_OWN || kind == HP_RULE_FP_OWN;
  if (!is_own) {
    if (walk->out == walk->end) {
      walk->flags |= HP_UNWIND_TRUNCATED;
      return false;
    }
    *walk->out++ = walk->key;
  }
  enum step_result result;
  if (is_own && ++walk->own_frames > HP_WALK_OWN_FRAMES_MAX) {
    result = STEP_FAILS;
  } else if (kind == HP_RULE_OTHER) {
    result = step_other(walk, rule);
  } else if (kind == HP_RULE_SIGNAL) {
    result = step_signal(walk) ? STEP_GOES_ON : STEP_FAILS;
  } else {
    result = step_by_rule(walk, rule) ? STEP_GOES_ON : STEP_FAILS;
  }
  if (result == STEP_FAILS) walk->flags |= HP_UNWIND_INCOMPLETE;
  return result == STEP_GOES_ON;
}

/* ---- the loop ---- */

static void walk_begin(struct walk *walk, const struct hp_frame_start *start) {
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

/* The stretch of the record from *at, whose state is the walk's, as far as the slots still hold what they held: its frames are
 * reported, *at becomes the last one reached, which is not reported yet. Returns the new end of the output. */
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
                            });
}

/* Around a special step from (key, sp, fp): linked only if it was a plain one on the thread's own stack. */
static HP_NOINLINE void remember_special(const struct walk *walk, struct hp_remembered *record, uint64_t rule,
                                         const struct hp_frame_start *from, bool goes_on) {
  uintptr_t own_end = hp_stack_own_tls.range.hi;
  bool is_linked = goes_on && hp_rule_kind(rule) <= HP_RULE_FP_OWN && walk->range.hi == own_end && walk->sp > from->sp;
  bool is_end = !goes_on && (walk->flags & (HP_UNWIND_INCOMPLETE | HP_UNWIND_TRUNCATED)) == 0;
  if (from->sp >= own_end) return;
  hp_remembered_add(record, (struct hp_remembered_frame){
                                .key = from->pc,
                                .sp = from->sp,
                                .fp = from->fp,
                                .cfa_distance = is_linked && walk->sp - from->sp <= UINT32_MAX ? (uint32_t)(walk->sp - from->sp) : 0,
                                .fp_words = (uint16_t)hp_rule_fp_words(rule),
                                .is_reported = is_linked ? hp_rule_kind(rule) <= HP_RULE_FP : from->pc != 0,
                                .is_end = is_end,
                            });
}

HP_READS_STACK static inline __attribute__((always_inline)) size_t walk_stack(struct walk *walk, uintptr_t *pcs, size_t max,
                                                                              const struct hp_rule_table *table,
                                                                              enum walk_mode mode,
                                                                              struct hp_remembered *record) {
  const uint64_t index_mask = table->index_mask;
  const uint64_t *const first = table->first;
  const struct hp_remembered_frame *at = mode == WALK_REUSING ? record->frames : NULL;
  size_t copied = 0;
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
      if (at->sp == sp && at->key == key && at->fp == fp) {
        const uintptr_t *before = out;
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
      if (!hp_rule_matches(rule, key)) rule = read_rule(walk, key);
    }
    uintptr_t cfa = sp + hp_rule_cfa_bytes(rule);
    uintptr_t fp_words = hp_rule_fp_words(rule);
    if (hp_rule_kind(rule) != HP_RULE_SP) {
      cfa = hp_rule_kind(rule) == HP_RULE_FP && fp % sizeof(uintptr_t) == 0 ? fp + hp_rule_cfa_bytes(rule) : 0; /* 0: below */
    }
    uintptr_t fp_slot = cfa - fp_words * sizeof(uintptr_t);
    if (HP_UNLIKELY(cfa <= sp || cfa > walk->range.hi || fp_slot < walk->range.lo || out == end)) {
      walk->key = key;
      walk->sp = sp;
      walk->fp = fp;
      walk->out = out;
      bool goes_on = step_special(walk, rule);
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
  if (mode == WALK_REUSING) hp_remembered_judge(record, total, copied);
  return total;
}

HP_READS_STACK static HP_NOINLINE size_t walk_recording(struct walk *walk, uintptr_t *pcs, size_t max, const struct hp_rule_table *table,
                                         struct hp_remembered *record) {
  hp_remembered_begin(record, walk->generation);
  size_t n = walk_stack(walk, pcs, max, table, WALK_RECORDING, record);
  hp_remembered_end(record);
  return n;
}

HP_READS_STACK static HP_NOINLINE size_t walk_plain(struct walk *walk, uintptr_t *pcs, size_t max, const struct hp_rule_table *table) {
  return walk_stack(walk, pcs, max, table, WALK_PLAIN, NULL);
}

HP_READS_STACK static size_t walk_once(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags) {
  const struct hp_rule_table *table = hp_rule_table_load();
  struct walk walk;
  walk_begin(&walk, start);
  size_t n;
  struct hp_remembered *record = NULL;
  /* Elsewhere than on the thread's own stack slots cannot be read unchecked; without a table rules are not to be trusted. */
  bool is_own_stack = walk.range.hi == hp_stack_own_tls.range.hi;
  if (is_own_stack && !hp_rule_table_is_empty(table)) record = hp_remembered_get();
  if (record == NULL) {
    n = walk_plain(&walk, pcs, max, table);
  } else if (record->is_due || record->generation != walk.generation) {
    n = walk_recording(&walk, pcs, max, table, record);
  } else {
    n = walk_stack(&walk, pcs, max, table, WALK_REUSING, record);
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

void hp_unwind_flush(void) { hp_rule_cache_flush(hp_modules_epoch()); }

void hp_unwind_after_load(void) { hp_object_find_refresh(); }

void hp_unwind_before_unload(void) {
  hp_rule_cache_suspend();
  hp_object_find_suspend();
}

bool hp_unwind_after_unload(void) {
  hp_object_find_resume();
  bool died = hp_modules_check() != 0;
  hp_rule_cache_resume(hp_modules_epoch());
  return died;
}

void hp_unwind_get_stats(struct hp_unwind_stats *out) {
  out->rule_misses = hp_load_relaxed(&stats.rule_misses);
  out->slow_walks = hp_load_relaxed(&stats.slow_walks);
  size_t record_bytes;
  hp_remembered_get_stats(&out->prefix_reuses, &record_bytes);
  out->cache_bytes = hp_rule_cache_bytes() + record_bytes;
}

void hp_unwind_lock_all(void) {
  hp_modules_lock();
  hp_rule_cache_lock();
}

void hp_unwind_unlock_all(void) {
  hp_rule_cache_unlock();
  hp_modules_unlock();
}
