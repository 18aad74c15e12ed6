/* SPDX-License-Identifier: MIT
 * code_bytes.c - see code_bytes.h. */
#include "code_bytes.h"

#include "hash.h"
#include "stack_bounds.h"

/* Answers about generated code, which is asked for again and again: the address, in the place that its hash says. Only the
 * common answer of each question is kept. */
enum { ANSWERS_BITS = 9 };
typedef uintptr_t answers[1 << ANSWERS_BITS]; /* atomic; 0: none */
static answers after_call, no_restorer;

static uintptr_t *answer_place(answers of, uintptr_t pc) { return &of[pc * HP_HASH_MULTIPLIER >> (64 - ANSWERS_BITS)]; }

HP_READS_STACK bool hp_code_is_after_call(uintptr_t pc) {
  uint8_t before[8];
  uintptr_t *known = answer_place(after_call, pc);
  if (hp_load_relaxed(known) == pc && pc != 0) return true;
  if (pc < sizeof(before) || !hp_stack_probe_range(pc - sizeof(before), sizeof(before))) return false;
  for (size_t i = 0; i < sizeof(before); i++) before[i] = ((const uint8_t *)(pc - sizeof(before)))[i];
  if (!hp_arch_is_after_call(before)) return false;
  hp_store_relaxed(known, pc);
  return true;
}

HP_READS_STACK bool hp_code_is_restorer(uintptr_t pc) {
  static const uint8_t expected[HP_RESTORER_BYTES] = HP_RESTORER_CODE;
  uintptr_t *known = answer_place(no_restorer, pc);
  if (hp_load_relaxed(known) == pc) return false;
  if (!hp_stack_probe_range(pc, HP_RESTORER_BYTES)) return false;
  for (size_t i = 0; i < HP_RESTORER_BYTES; i++) {
    if (((const uint8_t *)pc)[i] == expected[i]) continue;
    hp_store_relaxed(known, pc);
    return false;
  }
  return true;
}
