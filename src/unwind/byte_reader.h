/* SPDX-License-Identifier: MIT
 * byte_reader.h - a bounded reader of little-endian bytes, LEB128 numbers and DWARF's encoded pointers.
 * Invariants  never reads at or past `end`; after a read that did not fit `failed` is set, and every further read gives 0.
 * Pure; async-signal-safe. */
#ifndef HP_BYTE_READER_H
#define HP_BYTE_READER_H

#include <string.h>

#include "compiler.h"

struct hp_byte_reader {
  const uint8_t *at;
  const uint8_t *end;
  bool failed;
};

static inline size_t hp_reader_left(const struct hp_byte_reader *reader) { return (size_t)(reader->end - reader->at); }

/* n <= 8 bytes as an unsigned number. */
static inline uint64_t hp_reader_number(struct hp_byte_reader *reader, size_t n) {
  if (reader->failed || hp_reader_left(reader) < n) {
    reader->failed = true;
    return 0;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < n; i++) value |= (uint64_t)reader->at[i] << (8 * i);
  reader->at += n;
  return value;
}
static inline uint8_t hp_reader_u8(struct hp_byte_reader *reader) { return (uint8_t)hp_reader_number(reader, 1); }
static inline uint32_t hp_reader_u32(struct hp_byte_reader *reader) { return (uint32_t)hp_reader_number(reader, 4); }
static inline int64_t hp_reader_signed(struct hp_byte_reader *reader, size_t n) {
  uint64_t value = hp_reader_number(reader, n);
  unsigned unused = 64 - 8 * (unsigned)n;
  return (int64_t)(value << unused) >> unused;
}

static inline void hp_reader_skip(struct hp_byte_reader *reader, uint64_t n) {
  if (reader->failed || hp_reader_left(reader) < n) {
    reader->failed = true;
  } else {
    reader->at += n;
  }
}

/* Bits past the 64th are dropped. */
static inline uint64_t hp_reader_uleb(struct hp_byte_reader *reader) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 140; shift += 7) {
    uint8_t byte = hp_reader_u8(reader);
    if (shift < 64) value |= (uint64_t)(byte & 0x7F) << shift;
    if (!(byte & 0x80)) return value;
  }
  reader->failed = true;
  return 0;
}
static inline int64_t hp_reader_sleb(struct hp_byte_reader *reader) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 140;) {
    uint8_t byte = hp_reader_u8(reader);
    if (shift < 64) value |= (uint64_t)(byte & 0x7F) << shift;
    shift += 7;
    if (!(byte & 0x80)) {
      if (shift < 64 && (byte & 0x40)) value |= ~(uint64_t)0 << shift;
      return (int64_t)value;
    }
  }
  reader->failed = true;
  return 0;
}

enum { HP_PE_OMIT = 0xFF, HP_PE_PCREL = 0x10, HP_PE_DATAREL = 0x30, HP_PE_INDIRECT = 0x80 };

/* A pointer in one of DWARF's encodings; data_base is what "datarel" means (0: not allowed). An indirect pointer is read but
 * not followed. */
static inline uintptr_t hp_reader_pointer(struct hp_byte_reader *reader, uint8_t encoding, uintptr_t data_base) {
  uintptr_t base = 0;
  uint8_t relative = encoding & 0x70;
  if (relative == HP_PE_PCREL) {
    base = (uintptr_t)reader->at;
  } else if (relative == HP_PE_DATAREL && data_base != 0) {
    base = data_base;
  } else if (relative != 0) {
    reader->failed = true;
    return 0;
  }
  switch (encoding & 0x0F) {
    case 0x00: return base + hp_reader_number(reader, sizeof(uintptr_t));
    case 0x01: return base + hp_reader_uleb(reader);
    case 0x02: return base + hp_reader_number(reader, 2);
    case 0x03: return base + hp_reader_number(reader, 4);
    case 0x04: return base + hp_reader_number(reader, 8);
    case 0x09: return base + (uintptr_t)hp_reader_sleb(reader);
    case 0x0A: return base + (uintptr_t)hp_reader_signed(reader, 2);
    case 0x0B: return base + (uintptr_t)hp_reader_signed(reader, 4);
    case 0x0C: return base + (uintptr_t)hp_reader_signed(reader, 8);
    default: reader->failed = true; return 0;
  }
}

#endif
