/* SPDX-License-Identifier: MIT
 * rule.c - see rule.h. */
#include "rule.h"

#include "cfi_expression.h"

static bool evaluate(const struct hp_cfi_tables *tables, int32_t place, uintptr_t pc,
                     const struct hp_expression_value *initial, struct hp_expression_value *out) {
  struct hp_expression_input input = {.registers = NULL, .pc = pc};
  struct hp_byte_reader expression = {.at = tables->lo + place, .end = tables->hi, .failed = false};
  return hp_expression_evaluate(expression, &input, initial, out);
}

/* Is the register saved at base + offset? */
static bool is_saved_at(const struct hp_cfi_tables *tables, const struct hp_cfi_row *row, unsigned reg, uintptr_t pc,
                        const struct hp_expression_value *cfa, enum hp_value_base base, int64_t offset) {
  struct hp_expression_value place;
  return row->kind[reg] == HP_CFI_EXPRESSION && evaluate(tables, row->value[reg], pc, cfa, &place) && place.base == base &&
         place.offset == offset;
}

static bool is_kernel_signal_frame(const struct hp_cfi_tables *tables, const struct hp_cfi_row *row, uintptr_t pc,
                                   const struct hp_expression_value *cfa) {
  return cfa->base == HP_VALUE_AT_SP && cfa->offset == HP_SIGNAL_SP_OFFSET && cfa->added == 0 &&
         is_saved_at(tables, row, row->ra_reg, pc, cfa, HP_VALUE_SP, HP_SIGNAL_PC_OFFSET) &&
         is_saved_at(tables, row, HP_REG_FP, pc, cfa, HP_VALUE_SP, HP_SIGNAL_FP_OFFSET);
}

static bool is_untouched(const struct hp_cfi_row *row, unsigned reg) {
  return row->kind[reg] == HP_CFI_UNSPECIFIED || row->kind[reg] == HP_CFI_SAME;
}

/* Distance of the saved frame register from the CFA in words, 0 when untouched, -1 when it is neither. */
static int64_t saved_fp_words(const struct hp_cfi_row *row) {
  if (is_untouched(row, HP_REG_FP)) return 0;
  int32_t value = row->value[HP_REG_FP];
  if (row->kind[HP_REG_FP] != HP_CFI_OFFSET || value >= 0 || value % 8 != 0) return -1;
  return -(int64_t)value / 8;
}

/* Where the fast path looks for the return address (HP_RA_SLOT). */
static bool is_return_address_in_place(const struct hp_cfi_row *row, int64_t fp_words) {
  if (row->ra_reg != HP_REG_RA || row->kind[HP_REG_RA] != HP_CFI_OFFSET) return false;
#if defined(__aarch64__)
  return fp_words > 0 && row->value[HP_REG_RA] == -8 * fp_words + 8;
#else
  (void)fp_words;
  return row->value[HP_REG_RA] == -8;
#endif
}

uint64_t hp_rule_from_row(const struct hp_cfi_tables *tables, const struct hp_cfi_row *row, uintptr_t pc) {
  const uint64_t slow = hp_rule_make_other(HP_RULE_SLOW);
  struct hp_expression_value cfa = {.base = HP_VALUE_SP, .offset = row->cfa_value};
  if (row->kind[row->ra_reg] == HP_CFI_UNDEFINED) return hp_rule_make_other(HP_RULE_END);
  if (row->cfa_is_expression) {
    if (!evaluate(tables, row->cfa_value, pc, NULL, &cfa)) return slow;
  } else if (row->cfa_reg == HP_REG_FP) {
    cfa.base = HP_VALUE_FP;
  } else if (row->cfa_reg != HP_REG_SP) {
    return slow;
  }
  if (row->is_signal_frame) return is_kernel_signal_frame(tables, row, pc, &cfa) ? hp_rule_make(HP_RULE_SIGNAL, 0, 0) : slow;
  if (cfa.offset % 8 != 0 || !is_untouched(row, HP_REG_SP)) return slow;

#if defined(__x86_64__)
  if (cfa.base == HP_VALUE_AT_FP && cfa.added == 0 && -cfa.offset > 0 && -cfa.offset < HP_RULE_CFA_BYTES_MAX &&
      is_return_address_in_place(row, 0) && is_saved_at(tables, row, HP_REG_FP, pc, &cfa, HP_VALUE_FP, 0)) {
    return hp_rule_make(HP_RULE_FP_MEMORY, (uintptr_t)-cfa.offset, 0);
  }
#endif
  int64_t fp_words = saved_fp_words(row);
  bool is_memory = cfa.base == HP_VALUE_AT_SP && cfa.added == 8;
  if ((cfa.base != HP_VALUE_SP && cfa.base != HP_VALUE_FP && !is_memory) || fp_words < 0 ||
      fp_words > (int64_t)HP_RULE_FP_WORDS_MAX || !is_return_address_in_place(row, fp_words)) {
    return slow;
  }
  if (cfa.offset < (is_memory ? 0 : 8) || cfa.offset >= HP_RULE_CFA_BYTES_MAX) return slow;
  enum hp_rule_kind kind = is_memory ? HP_RULE_SP_MEMORY : cfa.base == HP_VALUE_SP ? HP_RULE_SP : HP_RULE_FP;
  return hp_rule_make(kind, (uintptr_t)cfa.offset, (uintptr_t)fp_words);
}
