/* SPDX-License-Identifier: MIT
 * walk_special.c - see walk.h: the frames that the loop does not know, or whose words are not in the range it knows. */
#include "code_bytes.h"
#include "modules.h"
#include "rule.h"
#include "rule_cache.h"
#include "slow_step.h"
#include "walk.h"

enum {
  HP_WALK_SIGNALS_MAX = 64,
  HP_WALK_OWN_FRAMES_MAX = 64,
  HP_WALK_SLOW_FRAMES_MAX = 2 * HP_STACK_WORDS_MAX, /* frames stepped again from the bottom for one slow one */
};

static bool read_word(struct hp_walk *walk, uintptr_t address, uintptr_t *out) {
  return hp_stack_read(&walk->range, address, out);
}

/* Returns to (pc, sp, fp) in the caller. */
static bool return_to(struct hp_walk *walk, uintptr_t pc, uintptr_t sp, uintptr_t fp) {
  walk->key = hp_arch_strip_pc(pc);
  walk->sp = sp;
  walk->fp = fp;
  return true;
}

/* CFA and fp as the rule says; both plain kinds and gcc's and OpenSSL's realigned frames. */
static bool step_by_rule(struct hp_walk *walk, uint64_t rule) {
  uintptr_t fp_words = hp_rule_fp_words(rule);
  uintptr_t distance = hp_rule_cfa_bytes(rule);
  uintptr_t cfa;
  uintptr_t pc;
  uintptr_t fp = walk->fp;
  switch (hp_rule_kind(rule)) {
    case HP_RULE_SP:
    case HP_RULE_SP_OWN: cfa = walk->sp + distance; break;
    case HP_RULE_FP:
    case HP_RULE_FP_OWN: cfa = walk->fp + distance; break;
    case HP_RULE_FP_MEMORY:
      if (walk->fp < walk->sp || !read_word(walk, walk->fp - distance, &cfa) || !read_word(walk, walk->fp, &fp))
        return false;
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

#if defined(__aarch64__)
/* All registers that a signal interrupted: a leaf function has its return address in x30 only, and no table describes the
 * restorer, so nothing further down leads to them. */
static void take_interrupted_registers(struct hp_walk *walk, uintptr_t frame, uintptr_t pc, uintptr_t sp) {
  struct hp_registers *registers = &walk->registers;
  registers->known = 1u << HP_REG_SP;
  for (unsigned reg = 0; reg < HP_REG_SP; reg++) {
    if (read_word(walk, frame + HP_SIGNAL_REGS_OFFSET + reg * sizeof(uintptr_t), &registers->value[reg])) {
      registers->known |= 1u << reg;
    }
  }
  registers->value[HP_REG_SP] = sp;
  registers->pc = pc;
  walk->registers_address = pc;
  walk->has_registers = true;
}
#endif

/* Out of a signal handler: pc is exact, sp is on whatever stack the thread was on. */
static bool step_signal(struct hp_walk *walk) {
  uintptr_t pc, sp, fp;
  if (++walk->signals > HP_WALK_SIGNALS_MAX) return false;
  if (!read_word(walk, walk->sp + HP_SIGNAL_PC_OFFSET, &pc) || !read_word(walk, walk->sp + HP_SIGNAL_SP_OFFSET, &sp) ||
      !read_word(walk, walk->sp + HP_SIGNAL_FP_OFFSET, &fp)) {
    return false;
  }
#if defined(__aarch64__)
  take_interrupted_registers(walk, walk->sp, pc, sp);
#endif
  walk->key = pc + HP_PC_STEP;
  walk->interrupted_key = walk->key;
  walk->sp = sp;
  walk->fp = fp;
  hp_stack_enter_jump(sp, &walk->range);
  return true;
}

static bool is_interrupted(const struct hp_walk *walk) { return walk->key == walk->interrupted_key; }

#if defined(__aarch64__)
static uint64_t find_rule(struct hp_walk *walk, uintptr_t key) {
  const struct hp_rule_table *table = hp_rule_table_load();
  size_t index = hp_rule_index(key, table->index_mask);
  uint64_t rule = hp_load_relaxed(&table->first[index]);
  if (!hp_rule_matches(rule, key)) rule = hp_load_relaxed(&table->second[index]);
  return hp_rule_matches(rule, key) ? rule : hp_walk_read_rule(walk, key);
}

/* A frame record lies anywhere in its frame, so the callee's does not say where the caller's stack pointer is: only that it is
 * above. The caller's own record is where x29 points, and its rule knows how far that is from the stack pointer. */
static uintptr_t caller_sp(struct hp_walk *walk, uintptr_t key, uintptr_t fp) {
  uintptr_t least = walk->fp + 2 * sizeof(uintptr_t);
  uint64_t rule = find_rule(walk, key);
  if (hp_rule_kind(rule) != HP_RULE_SP && hp_rule_kind(rule) != HP_RULE_SP_OWN) return least;
  uintptr_t sp = fp + hp_rule_fp_words(rule) * sizeof(uintptr_t) - hp_rule_cfa_bytes(rule);
  return sp > least ? sp : least;
}
#else
static uintptr_t caller_sp(const struct hp_walk *walk, uintptr_t key, uintptr_t fp) {
  (void)key, (void)fp;
  return walk->fp + 2 * sizeof(uintptr_t);
}
#endif

/* A frame without unwind data (generated code, hand-written assembly): a signal restorer of somebody's own, a leaf function
 * that a signal interrupted, or a frame that keeps the frame-pointer chain. Believed only if the word taken for the return
 * address is an address behind a call instruction. */
static bool step_without_data(struct hp_walk *walk) {
  uintptr_t pc, fp;
  if (hp_code_is_restorer(walk->key)) return step_signal(walk);
#if defined(__x86_64__)
  if (is_interrupted(walk) && read_word(walk, walk->sp, &pc) && hp_code_is_after_call(pc)) {
    return return_to(walk, pc, walk->sp + sizeof(uintptr_t), walk->fp);
  }
#endif
  if (walk->fp < walk->sp || walk->fp % sizeof(uintptr_t) != 0) return false;
  if (!read_word(walk, walk->fp, &fp) || !read_word(walk, walk->fp + sizeof(uintptr_t), &pc)) return false;
  pc = hp_arch_strip_pc(pc);
  if (!hp_code_is_after_call(pc)) return false;
  return return_to(walk, pc, caller_sp(walk, pc, fp), fp);
}

/* Outside all objects: could code be there at all? What a signal interrupted and what called us is believed. */
static bool is_plausible_code(const struct hp_walk *walk) {
  return walk->out == walk->begin || is_interrupted(walk) || hp_code_is_after_call(walk->key) ||
         hp_code_is_restorer(walk->key);
}

/* One step with all registers from the frame looked up by *address to the caller's. */
static bool step_registers(struct hp_walk *walk, struct hp_stack_range *range, uintptr_t *address) {
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

/* Every register of the walk's current frame: the stack is stepped through again, from here or from the last slow frame, up
 * to that frame. False: not reached (a frame without data in between, or a walk that did not begin on this stack). */
static HP_NOINLINE bool recover_registers(struct hp_walk *walk) {
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

static HP_NOINLINE bool step_slow(struct hp_walk *walk) {
  struct hp_registers *registers = &walk->registers;
  hp_add_relaxed(&hp_walk_counters.slow_frames, 1);
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

static enum step_result step_other(struct hp_walk *walk, uint64_t rule) {
  uintptr_t other = hp_rule_cfa_bytes(rule);
  if (other == HP_RULE_END) return STEP_ENDS;
  /* A restorer's table may begin at its first instruction. */
  if (other == HP_RULE_ENTRY && !is_interrupted(walk) && !hp_code_is_restorer(walk->key)) return STEP_ENDS;
  if (other == HP_RULE_SLOW) return step_slow(walk) ? STEP_GOES_ON : STEP_FAILS;
  /* A frame register of 0 marks the outermost frame (the ABI's convention; the loader's entry has no table). */
  if (walk->fp == 0 && !is_interrupted(walk) && !hp_code_is_restorer(walk->key)) return STEP_ENDS;
  return step_without_data(walk) ? STEP_GOES_ON : STEP_FAILS;
}

/* One frame that the loop does not know, or whose words are not in the known range. False: the walk ends here. */
bool hp_walk_step_special(struct hp_walk *walk, uint64_t rule) {
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
