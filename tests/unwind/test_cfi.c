/* SPDX-License-Identifier: MIT
 * test_cfi.c - cfi.c, cfi_expression.c and rule.c on tables written by hand: each operation means what DWARF says, and no
 * shortened or altered table is read past its end (an unmapped page lies behind). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "rng.h"
#include "rule.h"
#include "slow_step.h"

/* rbx, r12, rbp, rsp, the return address column; x19, x20, x29, sp, x30. */
#if defined(__x86_64__)
enum { SAVED = 3, SAVED_TOO = 12, FP = HP_REG_FP, SP = HP_REG_SP, RA = HP_REG_RA };
#else
enum { SAVED = 19, SAVED_TOO = 20, FP = HP_REG_FP, SP = HP_REG_SP, RA = HP_REG_RA };
#endif
enum { PAGE = 4096, CODE = 0x10000, MUTATIONS = 300000 };

/* Tables are built up to the end of a page. */
static uint8_t *page_end;
static uint8_t content[1024];
static size_t used;

static void byte(unsigned value) { content[used++] = (uint8_t)value; }
static void word(uint32_t value) {
  memcpy(content + used, &value, 4);
  used += 4;
}
static void bytes(const uint8_t *from, size_t n) {
  memcpy(content + used, from, n);
  used += n;
}

static void end_record(size_t start) {
  while ((used - start) % 4 != 0) byte(0);
  uint32_t length = (uint32_t)(used - start - 4);
  memcpy(content + start, &length, 4);
}

struct program {
  const uint8_t *bytes;
  size_t size;
};
#define AT(reg) (0x70 + (reg)) /* DW_OP_breg */
#define PROGRAM(...) ((struct program){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

/* One CIE ("zR", pcrel sdata4, CFA = sp + 8, return address at -8), one FDE over [base + CODE, base + CODE + 0x100), a search table.
 */
static struct hp_cfi_tables build(struct program program, const char *augmentation, bool with_table) {
  used = 0;
  byte(1);
  byte(0x1B);
  byte(with_table ? 0x03 : 0xFF);
  byte(with_table ? 0x3B : 0xFF);
  size_t section_at = used;
  word(0);
  size_t pair_at = used + 4;
  if (with_table) {
    word(1);
    word(0);
    word(0);
  }
  uint32_t section = (uint32_t)(used - section_at);
  memcpy(content + section_at, &section, 4);
  size_t common = used;
  word(0);
  word(0);
  byte(1);
  bytes((const uint8_t *)augmentation, strlen(augmentation) + 1);
  byte(1);
  byte(0x78); /* -8 */
  byte(RA);
  size_t size_at = used;
  byte(0);
  for (const char *letter = augmentation + 1; *letter != 0; letter++) {
    if (*letter == 'R') byte(0x1B);
    if (*letter == 'L') byte(0x1B);
    if (*letter == 'P') {
      byte(0x9B);
      word(0x1234);
    }
  }
  content[size_at] = (uint8_t)(used - size_at - 1);
  bytes((const uint8_t[]){0x0C, SP, 8, 0x80 | RA, 1}, 5);
  end_record(common);
  size_t function = used;
  word(0);
  word((uint32_t)(used - common));
  word((uint32_t)(CODE - used));
  word(0x100);
  byte(0);
  bytes(program.bytes, program.size);
  end_record(function);
  word(0);
  if (with_table) {
    uint32_t pair[2] = {CODE, (uint32_t)function};
    memcpy(content + pair_at, pair, 8);
  }
  uint8_t *start = page_end - used;
  memcpy(start, content, used);
  return (struct hp_cfi_tables){.lo = start, .hi = page_end, .eh_frame_hdr = start};
}

static struct hp_cfi_row row_at(struct program program, uintptr_t place) {
  struct hp_cfi_tables tables = build(program, "zR", true);
  struct hp_cfi_row row;
  assert_int_equal(hp_cfi_find_row(&tables, (uintptr_t)tables.lo + CODE + place, &row), HP_CFI_FOUND);
  return row;
}

static int set_up(void **state) {
  (void)state;
  uint8_t *area = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(area != MAP_FAILED);
  mprotect(area + PAGE, PAGE, PROT_NONE);
  page_end = area + PAGE;
  return 0;
}

static void test_rows_change_at_their_address(void **state) {
  (void)state;
  struct program program = PROGRAM(0x41, 0x0E, 16, 0x80 | FP, 2, 0x43, 0x0D, FP, 0x02, 0x50, 0x0C, SP, 8, 0xC0 | FP);
  struct hp_cfi_row row = row_at(program, 0);
  assert_int_equal(row.cfa_reg, SP);
  assert_int_equal(row.cfa_value, 8);
  assert_int_equal(row.kind[FP], HP_CFI_UNSPECIFIED);
  assert_int_equal(row.value[RA], -8);
  row = row_at(program, 1);
  assert_int_equal(row.cfa_value, 16);
  assert_int_equal(row.kind[FP], HP_CFI_OFFSET);
  assert_int_equal(row.value[FP], -16);
  row = row_at(program, 3);
  assert_int_equal(row.cfa_reg, SP);
  row = row_at(program, 4);
  assert_int_equal(row.cfa_reg, FP);
  assert_int_equal(row.cfa_value, 16);
  row = row_at(program, 0x54);
  assert_int_equal(row.cfa_reg, SP);
  assert_int_equal(row.cfa_value, 8);
  assert_int_equal(row.kind[FP], HP_CFI_UNSPECIFIED);
}

static void test_every_operation_is_known(void **state) {
  (void)state;
  struct hp_cfi_row row =
      row_at(PROGRAM(0x05, SAVED, 3, 0x11, SAVED_TOO, 0x7D, 0x14, 13, 4, 0x15, 14, 0x7E, 0x07, 15, 0x08, FP, 0x09, 0, 1), 5);
  assert_int_equal(row.value[SAVED], -24);
  assert_int_equal(row.value[SAVED_TOO], 24);
  assert_int_equal(row.kind[13], HP_CFI_VAL_OFFSET);
  assert_int_equal(row.value[13], -32);
  assert_int_equal(row.value[14], 16);
  assert_int_equal(row.kind[15], HP_CFI_UNDEFINED);
  assert_int_equal(row.kind[FP], HP_CFI_SAME);
  assert_int_equal(row.kind[0], HP_CFI_REGISTER);
  assert_int_equal(row.value[0], 1);
  row = row_at(PROGRAM(0x12, FP, 0x7E, 0x2E, 99, 0x2F, SAVED, 2, 0x00), 5);
  assert_int_equal(row.cfa_reg, FP);
  assert_int_equal(row.cfa_value, 16);
  assert_int_equal(row.value[SAVED], 16);
  row = row_at(PROGRAM(0x13, 0x7D, 0x06, RA, 0x03, 4, 0, 0x0E, 1), 3);
  assert_int_equal(row.cfa_value, 24);
  row = row_at(PROGRAM(0x04, 4, 0, 0, 0, 0x0E, 77), 5);
  assert_int_equal(row.cfa_value, 77);
}

static void test_states_are_remembered_and_restored(void **state) {
  (void)state;
  struct program program = PROGRAM(0x0E, 16, 0x0A, 0x0E, 24, 0x80 | SAVED, 3, 0x0A, 0x0E, 99, 0x41, 0x0B, 0x41, 0x0B);
  assert_int_equal(row_at(program, 0).cfa_value, 99);
  assert_int_equal(row_at(program, 1).cfa_value, 24);
  struct hp_cfi_row row = row_at(program, 2);
  assert_int_equal(row.cfa_value, 16);
  assert_int_equal(row.kind[SAVED], HP_CFI_UNSPECIFIED);
}

static enum hp_cfi_result result_of(struct program program) {
  struct hp_cfi_tables tables = build(program, "zR", true);
  struct hp_cfi_row row;
  return hp_cfi_find_row(&tables, (uintptr_t)tables.lo + CODE + 5, &row);
}

static void test_senseless_programs_are_refused(void **state) {
  (void)state;
  assert_int_equal(result_of(PROGRAM(0x0B)), HP_CFI_CORRUPT);            /* nothing remembered */
  assert_int_equal(result_of(PROGRAM(0x3F)), HP_CFI_CORRUPT);            /* no such operation */
  assert_int_equal(result_of(PROGRAM(0x0C, 200, 1, 8)), HP_CFI_CORRUPT); /* no such register */
  assert_int_equal(result_of(PROGRAM(0x0F, 120, 1)), HP_CFI_CORRUPT);    /* longer than the record */
  assert_int_equal(result_of(PROGRAM(0x0C, 7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1)), HP_CFI_CORRUPT);
  assert_int_equal(result_of(PROGRAM(0x0A, 0x0A, 0x0A, 0x0A, 0x0A, 0x0A, 0x0A, 0x0A, 0x0A)), HP_CFI_CORRUPT);
}

static void test_addresses_outside_have_no_entry(void **state) {
  (void)state;
  for (int with_table = 0; with_table < 2; with_table++) {
    struct hp_cfi_tables tables = build(PROGRAM(0), "zR", with_table);
    struct hp_cfi_row row;
    uintptr_t code = (uintptr_t)tables.lo + CODE;
    assert_int_equal(hp_cfi_find_row(&tables, code, &row), HP_CFI_FOUND);
    assert_int_equal(row.function_start, code);
    assert_int_equal(row.function_end, code + 0x100);
    assert_int_equal(hp_cfi_find_row(&tables, code + 0xFF, &row), HP_CFI_FOUND);
    assert_int_equal(hp_cfi_find_row(&tables, code + 0x100, &row), HP_CFI_NO_ENTRY);
    assert_int_equal(hp_cfi_find_row(&tables, code - 1, &row), HP_CFI_NO_ENTRY);
    assert_int_equal(hp_cfi_find_row(&tables, 0, &row), HP_CFI_NO_ENTRY);
    assert_int_equal(hp_cfi_find_row(&tables, UINTPTR_MAX, &row), HP_CFI_NO_ENTRY);
  }
}

static void test_augmentations_of_c_plus_plus_and_signal_frames(void **state) {
  (void)state;
  struct hp_cfi_row row;
  struct hp_cfi_tables tables = build(PROGRAM(0), "zPLR", true);
  assert_int_equal(hp_cfi_find_row(&tables, (uintptr_t)tables.lo + CODE, &row), HP_CFI_FOUND);
  assert_false(row.is_signal_frame);
  tables = build(PROGRAM(0), "zRS", true);
  assert_int_equal(hp_cfi_find_row(&tables, (uintptr_t)tables.lo + CODE, &row), HP_CFI_FOUND);
  assert_true(row.is_signal_frame);
}

static void look_up_all(const struct hp_cfi_tables *tables) {
  struct hp_cfi_row row;
  uintptr_t address = (uintptr_t)tables->lo + CODE + 9;
  if (hp_cfi_find_row(tables, address, &row) == HP_CFI_FOUND) hp_rule_from_row(tables, &row, address);
}

static void test_shortened_tables_are_not_overrun(void **state) {
  (void)state;
  struct hp_cfi_tables tables = build(PROGRAM(0x0F, 3, AT(SP), 8, 0x06, 0x10, FP, 2, AT(FP), 0), "zPLR", true);
  size_t whole = used;
  for (size_t n = 0; n < whole; n++) {
    uint8_t *start = page_end - n;
    memcpy(start, content, n);
    tables = (struct hp_cfi_tables){.lo = start, .hi = page_end, .eh_frame_hdr = start};
    look_up_all(&tables);
  }
}

static void test_altered_tables_are_not_overrun(void **state) {
  (void)state;
  struct hp_rng rng = {3};
  for (int i = 0; i < MUTATIONS; i++) {
    struct hp_cfi_tables tables =
        build(PROGRAM(0x41, 0x0E, 16, 0x0F, 3, AT(SP), 8, 0x06, 0x10, FP, 2, AT(FP), 0, 0x0A, 0x0B), i % 2 ? "zPLR" : "zRS",
              i % 3 != 0);
    for (unsigned n = 1 + hp_rng_next(&rng) % 3; n > 0; n--) {
      page_end[-1 - (ptrdiff_t)(hp_rng_next(&rng) % used)] = (uint8_t)hp_rng_next(&rng);
    }
    look_up_all(&tables);
  }
}

/* ---- rules ---- */

static uint64_t rule_of(struct program program, const char *augmentation, uintptr_t place) {
  struct hp_cfi_tables tables = build(program, augmentation, true);
  struct hp_cfi_row row;
  uintptr_t address = ((uintptr_t)tables.lo + CODE + 15) & ~(uintptr_t)15;
  address += place;
  assert_int_equal(hp_cfi_find_row(&tables, address, &row), HP_CFI_FOUND);
  return hp_rule_from_row(&tables, &row, address);
}

#if defined(__x86_64__)
static void test_plain_rows_pack_into_a_word(void **state) {
  (void)state;
  uint64_t rule = rule_of(PROGRAM(0x0E, 0x80, 0x40, 0x80 | FP, 7), "zR", 5);
  assert_int_equal(hp_rule_kind(rule), HP_RULE_SP);
  assert_int_equal(hp_rule_cfa_bytes(rule), 8192);
  assert_int_equal(hp_rule_fp_words(rule), 7);
  rule = rule_of(PROGRAM(0x0C, FP, 16, 0x80 | FP, 2), "zR", 5);
  assert_int_equal(hp_rule_kind(rule), HP_RULE_FP);
  assert_int_equal(hp_rule_cfa_bytes(rule), 16);
  assert_int_equal(hp_rule_fp_words(rule), 2);
}

static void test_rows_that_do_not_pack_are_slow(void **state) {
  (void)state;
  const uint64_t slow = hp_rule_make_other(HP_RULE_SLOW);
  assert_int_equal(rule_of(PROGRAM(0x0E, 0x80, 0x80, 0x20), "zR", 5), slow);       /* 512 KiB */
  assert_int_equal(rule_of(PROGRAM(0x0E, 0x88, 0x80, 0x1F), "zR", 5) == slow, 0);  /* just below */
  assert_int_equal(rule_of(PROGRAM(0x0C, SAVED, 16), "zR", 5), slow);              /* another register */
  assert_int_equal(rule_of(PROGRAM(0x0E, 12), "zR", 5), slow);                     /* no multiple of a word */
  assert_int_equal(rule_of(PROGRAM(0x80 | RA, 2), "zR", 5), slow);                 /* return address elsewhere */
  assert_int_equal(rule_of(PROGRAM(0x0E, 32, 0x80 | FP, 0x80, 1), "zR", 5), slow); /* rbp 128 words down */
  assert_int_equal(rule_of(PROGRAM(0x14, SP, 1), "zR", 5), slow);                  /* sp has a rule */
  assert_int_equal(rule_of(PROGRAM(0x07, RA), "zR", 5), hp_rule_make_other(HP_RULE_END));
}

/* The linker's: CFA = rsp + 8 + ((rip & 15) >= 11) * 8. */
static void test_stubs_of_the_linker_become_plain_rules(void **state) {
  (void)state;
  struct program stub = PROGRAM(0x0F, 11, AT(SP), 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22);
  assert_int_equal(rule_of(stub, "zR", 10), hp_rule_make(HP_RULE_SP, 8, 0));
  assert_int_equal(rule_of(stub, "zR", 11), hp_rule_make(HP_RULE_SP, 16, 0));
}

static void test_realigned_frames_have_rules(void **state) {
  (void)state;
  /* gcc: CFA = *(rbp - 16), rbp at *rbp */
  assert_int_equal(rule_of(PROGRAM(0x0F, 3, AT(FP), 0x70, 0x06, 0x10, FP, 2, AT(FP), 0), "zR", 5),
                   hp_rule_make(HP_RULE_FP_MEMORY, 16, 0));
  /* OpenSSL: CFA = *(rsp + 152) + 8, rbp at CFA - 24 */
  assert_int_equal(rule_of(PROGRAM(0x0F, 6, AT(SP), 0x98, 1, 0x06, 0x23, 8, 0x80 | FP, 3), "zR", 5),
                   hp_rule_make(HP_RULE_SP_MEMORY, 152, 3));
}

static void test_kernel_signal_frame_has_a_rule(void **state) {
  (void)state;
  struct program frame = PROGRAM(0x0F, 4, AT(SP), 0xA0, 1, 0x06, 0x10, RA, 3, AT(SP), 0xA8, 1, 0x10, FP, 3, AT(SP), 0xF8, 0);
  assert_int_equal(rule_of(frame, "zRS", 5), hp_rule_make(HP_RULE_SIGNAL, 0, 0));
  assert_int_equal(hp_rule_kind(rule_of(frame, "zR", 5)), HP_RULE_OTHER);
}

#else
/* A frame record: x29 and x30 side by side, anywhere in the frame. 4 and 2502 words below the CFA. */
static void test_plain_rows_pack_into_a_word(void **state) {
  (void)state;
  assert_int_equal(rule_of(PROGRAM(0x0E, 48, 0x80 | FP, 4, 0x80 | RA, 3), "zR", 5), hp_rule_make(HP_RULE_SP, 48, 4));
  assert_int_equal(rule_of(PROGRAM(0x0C, FP, 32, 0x80 | FP, 4, 0x80 | RA, 3), "zR", 5), hp_rule_make(HP_RULE_FP, 32, 4));
  uint64_t rule = rule_of(PROGRAM(0x0E, 0xB0, 0x9C, 1, 0x80 | FP, 0xC6, 0x13, 0x80 | RA, 0xC5, 0x13), "zR", 5);
  assert_int_equal(hp_rule_kind(rule), HP_RULE_SP);
  assert_int_equal(hp_rule_cfa_bytes(rule), 20016);
  assert_int_equal(hp_rule_fp_words(rule), 2502);
}

static void test_rows_that_do_not_pack_are_slow(void **state) {
  (void)state;
  const uint64_t slow = hp_rule_make_other(HP_RULE_SLOW);
  /* 128 KiB, and just below; the record 64 KiB down, and just below */
  assert_int_equal(rule_of(PROGRAM(0x0E, 0x80, 0x80, 8, 0x80 | FP, 4, 0x80 | RA, 3), "zR", 5), slow);
  assert_int_equal(rule_of(PROGRAM(0x0E, 0xF8, 0xFF, 7, 0x80 | FP, 4, 0x80 | RA, 3), "zR", 5),
                   hp_rule_make(HP_RULE_SP, (1 << 17) - 8, 4));
  assert_int_equal(rule_of(PROGRAM(0x0E, 0xF8, 0xFF, 7, 0x80 | FP, 0x80, 0x40, 0x80 | RA, 0xFF, 0x3F), "zR", 5), slow);
  assert_int_equal(rule_of(PROGRAM(0x0E, 0xF8, 0xFF, 7, 0x80 | FP, 0xFF, 0x3F, 0x80 | RA, 0xFE, 0x3F), "zR", 5),
                   hp_rule_make(HP_RULE_SP, (1 << 17) - 8, 8191));
  assert_int_equal(rule_of(PROGRAM(0x0E, 32, 0x80 | FP, 4, 0x80 | RA, 2), "zR", 5), slow); /* not side by side */
  assert_int_equal(rule_of(PROGRAM(0x0E, 16), "zR", 5), slow);                             /* x29 is not saved */
  assert_int_equal(rule_of(PROGRAM(0x0E, 32, 0x80 | FP, 4, 0x08, RA), "zR", 5), slow);     /* x30 is not */
  assert_int_equal(rule_of(PROGRAM(0x0C, SAVED, 16), "zR", 5), slow);                      /* another register */
  assert_int_equal(rule_of(PROGRAM(0x07, RA), "zR", 5), hp_rule_make_other(HP_RULE_END));
}

/* DW_CFA_AARCH64_negate_ra_state, and a frame signed with the second key. */
static void test_signed_frames_have_the_same_rows(void **state) {
  (void)state;
  struct program frame = PROGRAM(0x41, 0x2D, 0x0E, 16, 0x80 | FP, 2, 0x80 | RA, 1, 0x44, 0x2D);
  assert_int_equal(rule_of(frame, "zR", 9), hp_rule_make(HP_RULE_SP, 16, 2));
  assert_int_equal(rule_of(frame, "zRB", 9), hp_rule_make(HP_RULE_SP, 16, 2));
}
#endif

/* ---- expressions ---- */

static bool read_identity(void *context, uintptr_t address, uintptr_t *out) {
  (void)context;
  *out = address + 1;
  return address % 8 == 0;
}

static bool evaluate(struct program program, int64_t *out) {
  struct hp_registers registers = {.known = 1u << SAVED | 1u << SP, .pc = 0x1000};
  registers.value[SAVED] = 0x200;
  registers.value[SP] = 0x4000;
  struct hp_expression_input input = {.registers = &registers, .pc = 0x1000, .read = read_identity};
  uint8_t text[64];
  text[0] = (uint8_t)program.size;
  memcpy(text + 1, program.bytes, program.size);
  struct hp_byte_reader reader = {.at = text, .end = text + 1 + program.size, .failed = false};
  struct hp_expression_value value;
  if (!hp_expression_evaluate(reader, &input, NULL, &value)) return false;
  *out = value.offset;
  return true;
}

static void test_expressions_calculate(void **state) {
  (void)state;
  const struct {
    struct program program;
    int64_t result;
  } cases[] = {
    {PROGRAM(0x35), 5},
    {PROGRAM(0x08, 200), 200},
    {PROGRAM(0x09, 0xFF), -1},
    {PROGRAM(0x0A, 1, 2), 0x201},
    {PROGRAM(0x0B, 0, 0x80), -32768},
    {PROGRAM(0x0C, 1, 0, 0, 0x80), 0x80000001},
    {PROGRAM(0x0D, 0xFE, 0xFF, 0xFF, 0xFF), -2},
    {PROGRAM(0x0E, 1, 0, 0, 0, 0, 0, 0, 1), 0x0100000000000001},
    {PROGRAM(0x10, 0x80, 1), 128},
    {PROGRAM(0x11, 0x7F), -1},
    {PROGRAM(AT(SAVED), 0x10), 0x210},
    {PROGRAM(0x92, SP, 0x78), 0x3FF8},
#if defined(__x86_64__)
    {PROGRAM(AT(RA), 4), 0x1004}, /* the column stands for the pc */
#endif
    {PROGRAM(AT(SP), 0, 0x06), 0x4001},
    {PROGRAM(AT(SP), 1, 0x94, 1), 0x40},
    {PROGRAM(0x37, 0x32, 0x1C), 5},
    {PROGRAM(0x37, 0x32, 0x1B), 3},
    {PROGRAM(0x37, 0x32, 0x1D), 1},
    {PROGRAM(0x37, 0x32, 0x1E), 14},
    {PROGRAM(0x37, 0x32, 0x21), 7},
    {PROGRAM(0x37, 0x32, 0x27), 5},
    {PROGRAM(0x37, 0x32, 0x24), 28},
    {PROGRAM(0x11, 0x70, 0x32, 0x26), -4},
    {PROGRAM(0x09, 0xFF, 0x08, 60, 0x25), 15},
    {PROGRAM(0x37, 0x1F), -7},
    {PROGRAM(0x37, 0x20), -8},
    {PROGRAM(0x11, 0x79, 0x19), 7},
    {PROGRAM(0x37, 0x23, 3), 10},
    {PROGRAM(0x31, 0x32, 0x33, 0x17, 0x1C), -1}, /* rot: 3 1 2, then 1 - 2 */
    {PROGRAM(0x31, 0x32, 0x16, 0x1C), 1},        /* swap: 2 1 */
    {PROGRAM(0x31, 0x32, 0x14, 0x22), 3},        /* over */
    {PROGRAM(0x31, 0x32, 0x33, 0x15, 2), 1},     /* pick */
    {PROGRAM(0x31, 0x12, 0x22), 2},
    {PROGRAM(0x31, 0x32, 0x13), 1},
    {PROGRAM(0x31, 0x28, 1, 0, 0x39, 0x35), 5},             /* branch over lit9 */
    {PROGRAM(0x34, 0x31, 0x1C, 0x12, 0x28, 0xFA, 0xFF), 0}, /* count down */
    {PROGRAM(0x32, 0x32, 0x29), 1},
    {PROGRAM(0x31, 0x32, 0x2D), 1},
    {PROGRAM(0x31, 0x32, 0x2B), 0},
    {PROGRAM(0x31, 0x32, 0x2C), 1},
    {PROGRAM(0x31, 0x32, 0x2E), 1},
    {PROGRAM(0x96, 0x33), 3},
  };
  for (size_t i = 0; i < HP_ARRAY_LENGTH(cases); i++) {
    int64_t result = -99;
    assert_true(evaluate(cases[i].program, &result));
    if (result != cases[i].result) print_message("case %zu\n", i);
    assert_int_equal(result, cases[i].result);
  }
}

static void test_senseless_expressions_are_refused(void **state) {
  (void)state;
  const struct program cases[] = {
      PROGRAM(0x06),             /* nothing to look at */
      PROGRAM(0x22),             /* nothing to add */
      PROGRAM(0x31, 0x22),       /* one thing to add */
      PROGRAM(0x31, 0x30, 0x1B), /* division by 0 */
      PROGRAM(0x31, 0x30, 0x1D),
      PROGRAM(0x72, 0),          /* a register that is not known */
      PROGRAM(AT(SP), 1, 0x06),  /* across a word */
      PROGRAM(0x2F, 0xFD, 0xFF), /* for ever */
      PROGRAM(0x2F, 0xF0, 0xFF), /* before the start */
      PROGRAM(0x2F, 0x10, 0),    /* behind the end */
      PROGRAM(0x08),             /* cut off */
      PROGRAM(0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31), /* too deep */
      PROGRAM(0x31, 0x13),                                                                               /* nothing left */
      PROGRAM(0x9F), /* no such operation */
      PROGRAM(0x31, 0x15, 1),
  };
  for (size_t i = 0; i < HP_ARRAY_LENGTH(cases); i++) {
    int64_t result;
    assert_false(evaluate(cases[i], &result));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rows_change_at_their_address),
    cmocka_unit_test(test_every_operation_is_known),
    cmocka_unit_test(test_states_are_remembered_and_restored),
    cmocka_unit_test(test_senseless_programs_are_refused),
    cmocka_unit_test(test_addresses_outside_have_no_entry),
    cmocka_unit_test(test_augmentations_of_c_plus_plus_and_signal_frames),
    cmocka_unit_test(test_shortened_tables_are_not_overrun),
    cmocka_unit_test(test_altered_tables_are_not_overrun),
    cmocka_unit_test(test_plain_rows_pack_into_a_word),
    cmocka_unit_test(test_rows_that_do_not_pack_are_slow),
#if defined(__x86_64__)
    cmocka_unit_test(test_stubs_of_the_linker_become_plain_rules),
    cmocka_unit_test(test_realigned_frames_have_rules),
    cmocka_unit_test(test_kernel_signal_frame_has_a_rule),
#else
    cmocka_unit_test(test_signed_frames_have_the_same_rows),
#endif
    cmocka_unit_test(test_expressions_calculate),
    cmocka_unit_test(test_senseless_expressions_are_refused),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
