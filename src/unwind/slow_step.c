/* SPDX-License-Identifier: MIT
 * slow_step.c - see slow_step.h. */
#include "slow_step.h"

struct step {
  const struct hp_cfi_tables *tables;
  const struct hp_cfi_row *row;
  const struct hp_registers *old;
  struct hp_stack_range *range;
  uintptr_t cfa;
};

static bool read_stack(void *context, uintptr_t address, uintptr_t *out) { return hp_stack_read(context, address, out); }

static bool evaluate(const struct step *step, int32_t place, const struct hp_expression_value *initial, uintptr_t *out) {
  struct hp_expression_input input = {
      .registers = step->old, .pc = step->old->pc, .read = read_stack, .context = step->range};
  struct hp_byte_reader expression = {.at = step->tables->lo + place, .end = step->tables->hi, .failed = false};
  struct hp_expression_value value;
  if (!hp_expression_evaluate(expression, &input, initial, &value)) return false;
  *out = (uintptr_t)value.offset;
  return true;
}

static bool compute_cfa(struct step *step) {
  const struct hp_cfi_row *row = step->row;
  if (row->cfa_is_expression) return evaluate(step, row->cfa_value, NULL, &step->cfa);
  if ((step->old->known >> row->cfa_reg & 1) == 0) return false;
  step->cfa = step->old->value[row->cfa_reg] + (uintptr_t)(intptr_t)row->cfa_value;
  return true;
}

/* The caller's value of a register; false: it has none that we know. */
static bool recover(const struct step *step, unsigned reg, uintptr_t *out) {
  const struct hp_cfi_row *row = step->row;
  const struct hp_expression_value cfa = {.base = HP_VALUE_CONSTANT, .offset = (int64_t)step->cfa};
  int32_t value = row->value[reg];
  uintptr_t place;
  switch ((enum hp_cfi_kind)row->kind[reg]) {
    case HP_CFI_UNSPECIFIED:
    case HP_CFI_SAME: *out = step->old->value[reg]; return (step->old->known >> reg & 1) != 0;
    case HP_CFI_UNDEFINED: return false;
    case HP_CFI_OFFSET: return hp_stack_read(step->range, step->cfa + (uintptr_t)(intptr_t)value, out);
    case HP_CFI_VAL_OFFSET: *out = step->cfa + (uintptr_t)(intptr_t)value; return true;
    case HP_CFI_REGISTER:
      if (value < 0 || value >= HP_REG_COUNT || (step->old->known >> value & 1) == 0) return false;
      *out = step->old->value[value];
      return true;
    case HP_CFI_EXPRESSION: return evaluate(step, value, &cfa, &place) && hp_stack_read(step->range, place, out);
    case HP_CFI_VAL_EXPRESSION: return evaluate(step, value, &cfa, out);
  }
  return false;
}

bool hp_slow_step(const struct hp_cfi_tables *tables, uintptr_t address, struct hp_registers *registers,
                  struct hp_stack_range *range, bool *out_was_signal_frame) {
  struct hp_cfi_row row;
  if (hp_cfi_find_row(tables, address, &row) != HP_CFI_FOUND) return false;
  struct hp_registers old = *registers;
  struct step step = {.tables = tables, .row = &row, .old = &old, .range = range};
  if (!compute_cfa(&step)) return false;
  registers->known = 0;
  for (unsigned reg = 0; reg < HP_REG_COUNT; reg++) {
    if (recover(&step, reg, &registers->value[reg])) registers->known |= 1u << reg;
  }
  if (row.kind[HP_REG_SP] == HP_CFI_UNSPECIFIED || row.kind[HP_REG_SP] == HP_CFI_SAME) {
    registers->value[HP_REG_SP] = step.cfa;
    registers->known |= 1u << HP_REG_SP;
  }
  if ((registers->known >> row.ra_reg & 1) == 0 || (registers->known >> HP_REG_SP & 1) == 0) return false;
  registers->pc = hp_arch_strip_pc(registers->value[row.ra_reg]);
#if defined(__x86_64__)
  registers->known &= ~(1u << HP_REG_RA); /* the column stands for rip; it is no register of the caller */
#endif
  *out_was_signal_frame = row.is_signal_frame;
  return true;
}
