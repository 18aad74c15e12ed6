/* SPDX-License-Identifier: MIT
 * cfi_expression.c - see cfi_expression.h. */
#include "cfi_expression.h"

struct expression_machine {
  const struct hp_expression_input *input;
  struct hp_byte_reader reader;
  const uint8_t *start;
  unsigned depth;
  struct hp_expression_value stack[HP_EXPRESSION_DEPTH_MAX];
};

static bool push(struct expression_machine *machine, struct hp_expression_value value) {
  if (machine->depth == HP_EXPRESSION_DEPTH_MAX) return false;
  machine->stack[machine->depth++] = value;
  return true;
}

static bool push_constant(struct expression_machine *machine, uint64_t value) {
  return push(machine, (struct hp_expression_value){.base = HP_VALUE_CONSTANT, .offset = (int64_t)value});
}

static bool push_register(struct expression_machine *machine, uint64_t reg, int64_t offset) {
  const struct hp_registers *registers = machine->input->registers;
#if defined(__x86_64__)
  if (reg == HP_REG_RA) return push_constant(machine, machine->input->pc + (uint64_t)offset);
#endif
  if (reg >= HP_REG_COUNT) return false;
  if (registers != NULL) {
    return (registers->known >> reg & 1) != 0 && push_constant(machine, registers->value[reg] + (uint64_t)offset);
  }
  if (reg != HP_REG_SP && reg != HP_REG_FP) return false;
  enum hp_value_base base = reg == HP_REG_SP ? HP_VALUE_SP : HP_VALUE_FP;
  return push(machine, (struct hp_expression_value){.base = base, .offset = offset});
}

static bool add_constant(struct hp_expression_value *value, uint64_t n) {
  bool is_memory = value->base == HP_VALUE_AT_SP || value->base == HP_VALUE_AT_FP;
  int64_t *field = is_memory ? &value->added : &value->offset;
  *field = (int64_t)((uint64_t)*field + n);
  return true;
}

static bool dereference(struct expression_machine *machine, unsigned size) {
  if (machine->depth == 0) return false;
  struct hp_expression_value *top = &machine->stack[machine->depth - 1];
  if (machine->input->registers == NULL) {
    if ((top->base != HP_VALUE_SP && top->base != HP_VALUE_FP) || size != sizeof(uintptr_t)) return false;
    top->base = top->base == HP_VALUE_SP ? HP_VALUE_AT_SP : HP_VALUE_AT_FP;
    top->added = 0;
    return true;
  }
  uintptr_t word;
  uintptr_t address = (uintptr_t)top->offset;
  unsigned inside = (unsigned)(address % sizeof(uintptr_t));
  if (size == 0 || inside + size > sizeof(uintptr_t)) return false;
  if (!machine->input->read(machine->input->context, address - inside, &word)) return false;
  word >>= 8 * inside;
  if (size < sizeof(uintptr_t)) word &= ((uintptr_t)1 << (8 * size)) - 1;
  top->offset = (int64_t)word;
  return true;
}

static bool calculate(uint8_t operation, uint64_t left, uint64_t right, uint64_t *out) {
  int64_t a = (int64_t)left;
  int64_t b = (int64_t)right;
  switch (operation) {
    case 0x1A: *out = left & right; break;
    case 0x1B:
      if (b == 0 || (a == INT64_MIN && b == -1)) return false;
      *out = (uint64_t)(a / b);
      break;
    case 0x1C: *out = left - right; break;
    case 0x1D:
      if (right == 0) return false;
      *out = left % right;
      break;
    case 0x1E: *out = left * right; break;
    case 0x21: *out = left | right; break;
    case 0x22: *out = left + right; break;
    case 0x24: *out = right < 64 ? left << right : 0; break;
    case 0x25: *out = right < 64 ? left >> right : 0; break;
    case 0x26: *out = (uint64_t)(a >> (right < 63 ? right : 63)); break;
    case 0x27: *out = left ^ right; break;
    case 0x29: *out = a == b; break;
    case 0x2A: *out = a >= b; break;
    case 0x2B: *out = a > b; break;
    case 0x2C: *out = a <= b; break;
    case 0x2D: *out = a < b; break;
    case 0x2E: *out = a != b; break;
    default: return false;
  }
  return true;
}

static bool run_binary(struct expression_machine *machine, uint8_t operation) {
  if (machine->depth < 2) return false;
  struct hp_expression_value right = machine->stack[--machine->depth];
  struct hp_expression_value *left = &machine->stack[machine->depth - 1];
  if (left->base == HP_VALUE_CONSTANT && right.base == HP_VALUE_CONSTANT) {
    uint64_t result;
    if (!calculate(operation, (uint64_t)left->offset, (uint64_t)right.offset, &result)) return false;
    left->offset = (int64_t)result;
    return true;
  }
  if (operation == 0x22 && right.base == HP_VALUE_CONSTANT) return add_constant(left, (uint64_t)right.offset);
  if (operation == 0x22 && left->base == HP_VALUE_CONSTANT) {
    uint64_t n = (uint64_t)left->offset;
    *left = right;
    return add_constant(left, n);
  }
  if (operation == 0x1C && right.base == HP_VALUE_CONSTANT) return add_constant(left, -(uint64_t)right.offset);
  return false;
}

static bool run_unary(struct expression_machine *machine, uint8_t operation) {
  if (machine->depth == 0) return false;
  struct hp_expression_value *top = &machine->stack[machine->depth - 1];
  if (operation == 0x23) return add_constant(top, hp_reader_uleb(&machine->reader));
  if (top->base != HP_VALUE_CONSTANT) return false;
  uint64_t value = (uint64_t)top->offset;
  if (operation == 0x1F || (operation == 0x19 && top->offset < 0)) value = -value;
  if (operation == 0x20) value = ~value;
  top->offset = (int64_t)value;
  return true;
}

static bool run_stack(struct expression_machine *machine, uint8_t operation) {
  struct hp_expression_value *stack = machine->stack;
  unsigned depth = machine->depth;
  unsigned place = 0; /* of the copied value, from the top */
  switch (operation) {
    case 0x12: break;
    case 0x13:
      if (depth == 0) return false;
      machine->depth--;
      return true;
    case 0x14: place = 1; break;
    case 0x15: place = hp_reader_u8(&machine->reader); break;
    default: {
      unsigned n = operation == 0x16 ? 2 : 3; /* swap, rot: the top goes below the others */
      if (depth < n) return false;
      struct hp_expression_value top = stack[depth - 1];
      for (unsigned i = 1; i < n; i++) stack[depth - i] = stack[depth - i - 1];
      stack[depth - n] = top;
      return true;
    }
  }
  return place < depth && push(machine, stack[depth - 1 - place]);
}

static bool run_branch(struct expression_machine *machine, bool is_conditional) {
  int64_t distance = hp_reader_signed(&machine->reader, 2);
  if (is_conditional) {
    if (machine->depth == 0) return false;
    struct hp_expression_value condition = machine->stack[--machine->depth];
    if (condition.base != HP_VALUE_CONSTANT) return false;
    if (condition.offset == 0) return true;
  }
  int64_t place = machine->reader.at - machine->start + distance;
  if (place < 0 || place > machine->reader.end - machine->start) return false;
  machine->reader.at = machine->start + place;
  return true;
}

static bool run_operation(struct expression_machine *machine, uint8_t operation) {
  struct hp_byte_reader *reader = &machine->reader;
  if (operation >= 0x30 && operation <= 0x4F) return push_constant(machine, operation - 0x30u);
  if (operation >= 0x70 && operation <= 0x8F) return push_register(machine, operation - 0x70u, hp_reader_sleb(reader));
  switch (operation) {
    case 0x03: return push_constant(machine, hp_reader_number(reader, 8));
    case 0x06: return dereference(machine, sizeof(uintptr_t));
    case 0x08: return push_constant(machine, hp_reader_number(reader, 1));
    case 0x09: return push_constant(machine, (uint64_t)hp_reader_signed(reader, 1));
    case 0x0A: return push_constant(machine, hp_reader_number(reader, 2));
    case 0x0B: return push_constant(machine, (uint64_t)hp_reader_signed(reader, 2));
    case 0x0C: return push_constant(machine, hp_reader_number(reader, 4));
    case 0x0D: return push_constant(machine, (uint64_t)hp_reader_signed(reader, 4));
    case 0x0E:
    case 0x0F: return push_constant(machine, hp_reader_number(reader, 8));
    case 0x10: return push_constant(machine, hp_reader_uleb(reader));
    case 0x11: return push_constant(machine, (uint64_t)hp_reader_sleb(reader));
    case 0x12:
    case 0x13:
    case 0x14:
    case 0x15:
    case 0x16:
    case 0x17: return run_stack(machine, operation);
    case 0x19:
    case 0x1F:
    case 0x20:
    case 0x23: return run_unary(machine, operation);
    case 0x28: return run_branch(machine, true);
    case 0x2F: return run_branch(machine, false);
    case 0x92: {
      uint64_t reg = hp_reader_uleb(reader);
      return push_register(machine, reg, hp_reader_sleb(reader));
    }
    case 0x94: return dereference(machine, hp_reader_u8(reader));
    case 0x96: return true; /* nop */
    default: return run_binary(machine, operation);
  }
}

bool hp_expression_evaluate(struct hp_byte_reader expression, const struct hp_expression_input *input,
                            const struct hp_expression_value *initial, struct hp_expression_value *out) {
  struct expression_machine machine;
  machine.input = input;
  machine.reader = expression;
  machine.depth = 0;
  uint64_t length = hp_reader_uleb(&machine.reader);
  if (machine.reader.failed || length > hp_reader_left(&machine.reader)) return false;
  machine.start = machine.reader.at;
  machine.reader.end = machine.reader.at + length;
  if (initial != NULL) push(&machine, *initial);
  for (int steps = 0; machine.reader.at < machine.reader.end; steps++) {
    if (steps == HP_EXPRESSION_STEPS_MAX) return false;
    uint8_t operation = hp_reader_u8(&machine.reader);
    if (!run_operation(&machine, operation) || machine.reader.failed) return false;
  }
  if (machine.depth == 0) return false;
  *out = machine.stack[machine.depth - 1];
  return true;
}
