/* SPDX-License-Identifier: MIT
 * cfi.h - reads .eh_frame: from an address to the rules that lead from its frame to the caller's.
 *
 * Invariants  reads only inside [lo, hi) of its tables, whatever bytes are there; every loop is bounded by them or by a
 *             limit. The tables are hostile input: a bad one gives HP_CFI_CORRUPT, never a fault.
 * Callers     walk_rule (rule misses), slow_step, the fuzzer.
 * Threads     pure functions: any thread, async-signal-safe, no memory. */
#ifndef HP_CFI_H
#define HP_CFI_H

#include "arch.h"
#include "compiler.h"

/* The bytes that may be read, and where in them the .eh_frame_hdr lies. */
struct hp_cfi_tables {
  const uint8_t *lo;
  const uint8_t *hi;
  const uint8_t *eh_frame_hdr; /* NULL: the object has none */
};

enum hp_cfi_kind {
  HP_CFI_UNSPECIFIED = 0, /* no rule: the architecture's default, "unchanged" */
  HP_CFI_SAME,
  HP_CFI_UNDEFINED,
  HP_CFI_OFFSET,     /* saved at CFA + value */
  HP_CFI_VAL_OFFSET, /* is CFA + value */
  HP_CFI_REGISTER,   /* is in register `value` */
  HP_CFI_EXPRESSION, /* saved at the address the expression gives; value: its place after tables->lo */
  HP_CFI_VAL_EXPRESSION,
};

/* One row of the table: the state of a frame at one address. */
struct hp_cfi_row {
  int32_t cfa_value; /* offset, or place of the expression after tables->lo */
  uint8_t cfa_reg;   /* when the CFA is register + offset */
  bool cfa_is_expression;
  bool is_signal_frame;
  uint8_t ra_reg; /* return address column; below HP_REG_COUNT */
  uintptr_t function_start;
  uintptr_t function_end;
  uint8_t kind[HP_REG_COUNT];
  int32_t value[HP_REG_COUNT];
};

enum hp_cfi_result {
  HP_CFI_FOUND = 0,
  HP_CFI_NO_ENTRY, /* no function of the tables covers the address */
  HP_CFI_CORRUPT,  /* the tables make no sense, or use what no compiler emits */
};

/* The row for the instruction at `address` (a return address minus one, or an interrupted pc). */
enum hp_cfi_result hp_cfi_find_row(const struct hp_cfi_tables *tables, uintptr_t address, struct hp_cfi_row *out);

#endif
