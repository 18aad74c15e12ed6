/* SPDX-License-Identifier: MIT
 * cfi_expression.h - evaluates the DWARF expressions of call frame information, with register values or symbolically.
 *
 * Symbolic evaluation knows only the address; a result is a constant, sp + n, fp + n, or what lies at one of those, + n. It
 * turns the expressions that compilers and linkers emit (realigned stacks, PLT stubs, the signal restorer) into rules that
 * can be cached.
 * Invariants  at most HP_EXPRESSION_STEPS_MAX operations and HP_EXPRESSION_DEPTH_MAX values; memory is read only through
 * `read`. Pure; async-signal-safe. */
#ifndef HP_CFI_EXPRESSION_H
#define HP_CFI_EXPRESSION_H

#include "arch.h"
#include "byte_reader.h"
#include "compiler.h"

enum { HP_EXPRESSION_DEPTH_MAX = 12, HP_EXPRESSION_STEPS_MAX = 256 };

struct hp_registers {
  uintptr_t value[HP_REG_COUNT];
  uint32_t known; /* bit n: value[n] is right */
  uintptr_t pc;
};

enum hp_value_base { HP_VALUE_CONSTANT, HP_VALUE_SP, HP_VALUE_FP, HP_VALUE_AT_SP, HP_VALUE_AT_FP };

/* constant: offset; SP: sp + offset; AT_SP: *(sp + offset) + added. */
struct hp_expression_value {
  enum hp_value_base base;
  int64_t offset;
  int64_t added;
};

struct hp_expression_input {
  const struct hp_registers *registers;                           /* NULL: symbolic */
  uintptr_t pc;                                                   /* of the frame, for expressions that name it */
  bool (*read)(void *context, uintptr_t address, uintptr_t *out); /* not used when symbolic */
  void *context;
};

/* The expression at `expression` (its length first). `initial`: the value on the stack at the start, or NULL. False: an
 * operation that is not known, a register that is not, memory that cannot be read, a bad expression. */
bool hp_expression_evaluate(struct hp_byte_reader expression, const struct hp_expression_input *input,
                            const struct hp_expression_value *initial, struct hp_expression_value *out);

#endif
