/* SPDX-License-Identifier: MIT
 * cfi.c - see cfi.h. Three steps: the search table of .eh_frame_hdr gives the entry (FDE) that covers the address, the entry
 * names its common part (CIE), and the two programs are run up to the address.
 * What is not followed: DWARF64 lengths, indirect pointers, more than HP_CFI_REMEMBER_MAX nested remember_state. Compilers
 * emit none of it. */
#include "cfi.h"

#include "byte_reader.h"

enum {
  HP_CFI_REMEMBER_MAX = 8,
  HP_CFI_OPERATIONS_MAX = 1 << 16,   /* of one program; the longest seen in Debian has some 3 000 */
  HP_CFI_SCAN_ENTRIES_MAX = 1 << 16, /* of an object without a search table */
};

struct cfi_common {
  uint64_t code_align;
  int64_t data_align;
  uint8_t pointer_encoding;
  uint8_t ra_reg;
  bool has_augmentation_size;
  bool is_signal_frame;
  struct hp_byte_reader program;
};

struct cfi_function {
  uintptr_t start;
  uintptr_t size;
  struct cfi_common common;
  struct hp_byte_reader program;
};

static bool is_inside(const struct hp_cfi_tables *tables, uintptr_t at) {
  return at >= (uintptr_t)tables->lo && at < (uintptr_t)tables->hi;
}

static struct hp_byte_reader reader_at(const struct hp_cfi_tables *tables, uintptr_t at) {
  struct hp_byte_reader reader = {.at = (const uint8_t *)at, .end = tables->hi, .failed = false};
  if (!is_inside(tables, at)) reader = (struct hp_byte_reader){.at = tables->hi, .end = tables->hi, .failed = true};
  return reader;
}

/* A reader over the record (CIE or FDE) at `at`, past its length. */
static struct hp_byte_reader open_record(const struct hp_cfi_tables *tables, uintptr_t at) {
  struct hp_byte_reader reader = reader_at(tables, at);
  uint32_t length = hp_reader_u32(&reader);
  if (length == 0 || length == UINT32_MAX || length > hp_reader_left(&reader)) reader.failed = true;
  if (!reader.failed) reader.end = reader.at + length;
  return reader;
}

static bool parse_augmentation(struct hp_byte_reader *reader, const uint8_t *letters, struct cfi_common *out) {
  if (letters[0] == 0) return true;
  if (letters[0] != 'z') return false;
  out->has_augmentation_size = true;
  uint64_t size = hp_reader_uleb(reader);
  if (reader->failed || size > hp_reader_left(reader)) return false;
  struct hp_byte_reader data = {.at = reader->at, .end = reader->at + size, .failed = false};
  reader->at += size;
  for (letters++; *letters != 0; letters++) {
    switch (*letters) {
      case 'R': out->pointer_encoding = hp_reader_u8(&data); break;
      case 'L': hp_reader_u8(&data); break;
      case 'P': {
        uint8_t encoding = hp_reader_u8(&data);
        hp_reader_pointer(&data, encoding, 1); /* only passed over */
        break;
      }
      case 'S': out->is_signal_frame = true; break;
      case 'B':
      case 'G': break;              /* aarch64: signed with the other key, tagged memory */
      default: return !data.failed; /* unknown letters come last: their data is behind what we read */
    }
  }
  return !data.failed;
}

static bool parse_common(const struct hp_cfi_tables *tables, uintptr_t at, struct cfi_common *out) {
  struct hp_byte_reader reader = open_record(tables, at);
  uint32_t id = hp_reader_u32(&reader);
  uint8_t version = hp_reader_u8(&reader);
  if (reader.failed || id != 0 || (version != 1 && version != 3)) return false;
  const uint8_t *letters = reader.at;
  const uint8_t *end = memchr(letters, 0, hp_reader_left(&reader));
  if (end == NULL) return false;
  reader.at = end + 1;
  *out = (struct cfi_common){.pointer_encoding = 0};
  out->code_align = hp_reader_uleb(&reader);
  out->data_align = hp_reader_sleb(&reader);
  uint64_t ra_reg = version == 1 ? hp_reader_u8(&reader) : hp_reader_uleb(&reader);
  if (reader.failed || ra_reg >= HP_REG_COUNT) return false;
  out->ra_reg = (uint8_t)ra_reg;
  if (!parse_augmentation(&reader, letters, out) || reader.failed) return false;
  out->program = reader;
  return true;
}

/* Reads the FDE at `at`: false when it is none or corrupt. */
static bool parse_function(const struct hp_cfi_tables *tables, uintptr_t at, struct cfi_function *out) {
  struct hp_byte_reader reader = open_record(tables, at);
  uintptr_t pointer_at = (uintptr_t)reader.at;
  uint32_t distance = hp_reader_u32(&reader);
  if (reader.failed || distance == 0 || !parse_common(tables, pointer_at - distance, &out->common)) return false;
  uint8_t encoding = out->common.pointer_encoding;
  if (encoding == HP_PE_OMIT || (encoding & HP_PE_INDIRECT) != 0) return false;
  out->start = hp_reader_pointer(&reader, encoding, 0);
  out->size = hp_reader_pointer(&reader, encoding & 0x0F, 0);
  if (out->common.has_augmentation_size) hp_reader_skip(&reader, hp_reader_uleb(&reader));
  out->program = reader;
  return !reader.failed;
}

static bool covers(const struct cfi_function *function, uintptr_t address) {
  return address - function->start < function->size;
}

/* Binary search in a table of pairs (start, FDE), four bytes each, relative to the header: the only form linkers make. */
static enum hp_cfi_result search_table(const struct hp_cfi_tables *tables, struct hp_byte_reader table, uintptr_t count,
                                       uintptr_t address, struct cfi_function *out) {
  uintptr_t header = (uintptr_t)tables->eh_frame_hdr;
  size_t low = 0;
  size_t high = hp_reader_left(&table) / 8;
  if (count < high) high = count;
  const uint8_t *pairs = table.at;
  int32_t pair[2];
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    memcpy(pair, pairs + middle * 8, sizeof(pair));
    if (header + (uintptr_t)(intptr_t)pair[0] <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return HP_CFI_NO_ENTRY;
  memcpy(pair, pairs + (low - 1) * 8, sizeof(pair));
  if (!parse_function(tables, header + (uintptr_t)(intptr_t)pair[1], out)) return HP_CFI_CORRUPT;
  return covers(out, address) ? HP_CFI_FOUND : HP_CFI_NO_ENTRY;
}

static enum hp_cfi_result scan_section(const struct hp_cfi_tables *tables, uintptr_t section, uintptr_t address,
                                       struct cfi_function *out) {
  uintptr_t at = section;
  for (int i = 0; i < HP_CFI_SCAN_ENTRIES_MAX; i++) {
    struct hp_byte_reader record = open_record(tables, at);
    if (record.failed) return HP_CFI_NO_ENTRY; /* the terminator, or rubbish */
    struct hp_byte_reader id = record;
    if (hp_reader_u32(&id) != 0 && parse_function(tables, at, out) && covers(out, address)) return HP_CFI_FOUND;
    at = (uintptr_t)record.end;
  }
  return HP_CFI_NO_ENTRY;
}

static enum hp_cfi_result find_function(const struct hp_cfi_tables *tables, uintptr_t address, struct cfi_function *out) {
  if (tables->eh_frame_hdr == NULL) return HP_CFI_NO_ENTRY;
  struct hp_byte_reader header = reader_at(tables, (uintptr_t)tables->eh_frame_hdr);
  uintptr_t base = (uintptr_t)tables->eh_frame_hdr;
  uint8_t version = hp_reader_u8(&header);
  uint8_t section_encoding = hp_reader_u8(&header);
  uint8_t count_encoding = hp_reader_u8(&header);
  uint8_t table_encoding = hp_reader_u8(&header);
  if (header.failed || version != 1 || section_encoding == HP_PE_OMIT || (section_encoding & HP_PE_INDIRECT) != 0) {
    return HP_CFI_CORRUPT;
  }
  uintptr_t section = hp_reader_pointer(&header, section_encoding, base);
  if (header.failed) return HP_CFI_CORRUPT;
  if (count_encoding != HP_PE_OMIT && table_encoding == (HP_PE_DATAREL | 0x0B)) {
    uintptr_t count = hp_reader_pointer(&header, count_encoding, base);
    return header.failed ? HP_CFI_CORRUPT : search_table(tables, header, count, address, out);
  }
  return scan_section(tables, section, address, out);
}

struct cfi_machine {
  const struct hp_cfi_tables *tables;
  const struct cfi_function *function;
  struct hp_cfi_row *row;
  const struct hp_cfi_row *initial; /* what `restore` goes back to; NULL while the CIE's program runs */
  uintptr_t location;
  uintptr_t address;
  unsigned depth;
  struct hp_cfi_row remembered[HP_CFI_REMEMBER_MAX];
};

static void set_rule(struct cfi_machine *machine, uint64_t reg, enum hp_cfi_kind kind, int64_t value,
                     struct hp_byte_reader *reader) {
  if (reg >= HP_REG_COUNT) return; /* a register that is not followed */
  if (value < INT32_MIN || value > INT32_MAX) {
    reader->failed = true;
    return;
  }
  machine->row->kind[reg] = (uint8_t)kind;
  machine->row->value[reg] = (int32_t)value;
}

static void set_offset_rule(struct cfi_machine *machine, uint64_t reg, enum hp_cfi_kind kind, int64_t factored,
                            struct hp_byte_reader *reader) {
  int64_t value;
  if (__builtin_mul_overflow(factored, machine->function->common.data_align, &value))
    reader->failed = true;
  else
    set_rule(machine, reg, kind, value, reader);
}

/* An expression's place: it starts with its length. */
static int64_t take_expression(struct cfi_machine *machine, struct hp_byte_reader *reader) {
  int64_t place = reader->at - machine->tables->lo;
  hp_reader_skip(reader, hp_reader_uleb(reader));
  if (place > INT32_MAX) reader->failed = true;
  return place;
}

static void set_cfa(struct cfi_machine *machine, uint64_t reg, int64_t offset, struct hp_byte_reader *reader) {
  if (reg >= HP_REG_COUNT || offset < INT32_MIN || offset > INT32_MAX) {
    reader->failed = true;
    return;
  }
  machine->row->cfa_is_expression = false;
  machine->row->cfa_reg = (uint8_t)reg;
  machine->row->cfa_value = (int32_t)offset;
}

static void restore_rule(struct cfi_machine *machine, uint64_t reg, struct hp_byte_reader *reader) {
  if (machine->initial == NULL) {
    reader->failed = true;
  } else if (reg < HP_REG_COUNT) {
    machine->row->kind[reg] = machine->initial->kind[reg];
    machine->row->value[reg] = machine->initial->value[reg];
  }
}

static void remember_state(struct cfi_machine *machine, struct hp_byte_reader *reader) {
  if (machine->depth == HP_CFI_REMEMBER_MAX) {
    reader->failed = true;
  } else {
    machine->remembered[machine->depth++] = *machine->row;
  }
}

static void restore_state(struct cfi_machine *machine, struct hp_byte_reader *reader) {
  if (machine->depth == 0) {
    reader->failed = true;
  } else {
    *machine->row = machine->remembered[--machine->depth];
  }
}

/* Moves on; false when the next row would start behind the address. */
static bool advance(struct cfi_machine *machine, uint64_t factored) {
  uintptr_t next = machine->location + factored * machine->function->common.code_align;
  if (next < machine->location || next > machine->address) return false;
  machine->location = next;
  return true;
}

/* The operations whose upper two bits are 0, but for the ones that move the location. */
static void run_extended(struct cfi_machine *machine, uint8_t operation, struct hp_byte_reader *reader) {
  uint64_t reg;
  switch (operation) {
    case 0x00: break; /* nop */
    case 0x05:
      reg = hp_reader_uleb(reader);
      set_offset_rule(machine, reg, HP_CFI_OFFSET, (int64_t)hp_reader_uleb(reader), reader);
      break;
    case 0x06: restore_rule(machine, hp_reader_uleb(reader), reader); break;
    case 0x07: set_rule(machine, hp_reader_uleb(reader), HP_CFI_UNDEFINED, 0, reader); break;
    case 0x08: set_rule(machine, hp_reader_uleb(reader), HP_CFI_SAME, 0, reader); break;
    case 0x09:
      reg = hp_reader_uleb(reader);
      set_rule(machine, reg, HP_CFI_REGISTER, (int64_t)hp_reader_uleb(reader), reader);
      break;
    case 0x0A: remember_state(machine, reader); break;
    case 0x0B: restore_state(machine, reader); break;
    case 0x0C:
      reg = hp_reader_uleb(reader);
      set_cfa(machine, reg, (int64_t)hp_reader_uleb(reader), reader);
      break;
    case 0x0D: set_cfa(machine, hp_reader_uleb(reader), machine->row->cfa_value, reader); break;
    case 0x0E: set_cfa(machine, machine->row->cfa_reg, (int64_t)hp_reader_uleb(reader), reader); break;
    case 0x0F: {
      int64_t place = take_expression(machine, reader);
      machine->row->cfa_is_expression = true;
      machine->row->cfa_value = (int32_t)place;
      break;
    }
    case 0x10:
      reg = hp_reader_uleb(reader);
      set_rule(machine, reg, HP_CFI_EXPRESSION, take_expression(machine, reader), reader);
      break;
    case 0x11:
      reg = hp_reader_uleb(reader);
      set_offset_rule(machine, reg, HP_CFI_OFFSET, hp_reader_sleb(reader), reader);
      break;
    case 0x12:
    case 0x13: {
      reg = operation == 0x12 ? hp_reader_uleb(reader) : machine->row->cfa_reg;
      int64_t offset;
      if (__builtin_mul_overflow(hp_reader_sleb(reader), machine->function->common.data_align, &offset))
        reader->failed = true;
      else
        set_cfa(machine, reg, offset, reader);
      break;
    }
    case 0x14:
      reg = hp_reader_uleb(reader);
      set_offset_rule(machine, reg, HP_CFI_VAL_OFFSET, (int64_t)hp_reader_uleb(reader), reader);
      break;
    case 0x15:
      reg = hp_reader_uleb(reader);
      set_offset_rule(machine, reg, HP_CFI_VAL_OFFSET, hp_reader_sleb(reader), reader);
      break;
    case 0x16:
      reg = hp_reader_uleb(reader);
      set_rule(machine, reg, HP_CFI_VAL_EXPRESSION, take_expression(machine, reader), reader);
      break;
    case 0x2D: break; /* aarch64: the return address changes its signature, which is stripped anyway */
    case 0x2E: hp_reader_uleb(reader); break; /* GNU_args_size: for landing pads only */
    case 0x2F: {
      reg = hp_reader_uleb(reader);
      uint64_t offset = hp_reader_uleb(reader);
      if (offset > INT32_MAX)
        reader->failed = true;
      else
        set_offset_rule(machine, reg, HP_CFI_OFFSET, -(int64_t)offset, reader);
      break;
    }
    default: reader->failed = true;
  }
}

/* Runs a program up to the address. */
static bool run_program(struct cfi_machine *machine, struct hp_byte_reader program) {
  struct hp_byte_reader *reader = &program;
  for (int i = 0; reader->at < reader->end; i++) {
    if (i == HP_CFI_OPERATIONS_MAX) return false;
    uint8_t byte = hp_reader_u8(reader);
    uint8_t operand = byte & 0x3F;
    bool goes_on = true;
    switch (byte >> 6) {
      case 1: goes_on = advance(machine, operand); break;
      case 2: set_offset_rule(machine, operand, HP_CFI_OFFSET, (int64_t)hp_reader_uleb(reader), reader); break;
      case 3: restore_rule(machine, operand, reader); break;
      default:
        switch (operand) {
          case 0x01: { /* set_loc */
            uintptr_t next = hp_reader_pointer(reader, machine->function->common.pointer_encoding, 0);
            goes_on = next >= machine->location && next <= machine->address;
            if (goes_on) machine->location = next;
            break;
          }
          case 0x02: goes_on = advance(machine, hp_reader_u8(reader)); break;
          case 0x03: goes_on = advance(machine, hp_reader_number(reader, 2)); break;
          case 0x04: goes_on = advance(machine, hp_reader_u32(reader)); break;
          default: run_extended(machine, operand, reader);
        }
    }
    if (reader->failed) return false;
    if (!goes_on) break;
  }
  return true;
}

enum hp_cfi_result hp_cfi_find_row(const struct hp_cfi_tables *tables, uintptr_t address, struct hp_cfi_row *out) {
  struct cfi_function function;
  enum hp_cfi_result found = find_function(tables, address, &function);
  if (found != HP_CFI_FOUND) return found;
  struct cfi_machine machine = {.tables = tables, .function = &function, .row = out, .initial = NULL};
  memset(out, 0, sizeof(*out));
  out->cfa_reg = HP_REG_COUNT; /* none yet */
  out->ra_reg = function.common.ra_reg;
  out->is_signal_frame = function.common.is_signal_frame;
  out->function_start = function.start;
  out->function_end = function.start + function.size;
  machine.location = function.start;
  machine.address = address;
  if (!run_program(&machine, function.common.program)) return HP_CFI_CORRUPT;
  struct hp_cfi_row initial = *out;
  machine.initial = &initial;
  machine.location = function.start;
  if (!run_program(&machine, function.program)) return HP_CFI_CORRUPT;
  return out->cfa_is_expression || out->cfa_reg < HP_REG_COUNT ? HP_CFI_FOUND : HP_CFI_CORRUPT;
}
