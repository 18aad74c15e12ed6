/* SPDX-License-Identifier: MIT
 * test_books.c - readings and rows: kinds, deltas that telescope, reset, want of memory, ages; whose a row's frames are. */
#include <errno.h>

#include "books.h"
#include "budget.h"
#include "hot.h"
#include "modules.h"
#include "recorder.h"
#include "unit_test.h"

static uint8_t no_filter[2 + HP_FILTER_SLACK] __attribute__((aligned(64)));
struct hp_hot hp_hot;

static int set_up(void **state) {
  (void)state;
  if (hp_hot.filter == 0) hp_hot.filter = (uintptr_t)hp_filter_place(no_filter, 1);
  return 0;
}

static uintptr_t next_address = 16;

static void allocate(uintptr_t pc, int n, uint64_t size, float weight, bool keep) {
  for (int i = 0; i < n; i++, next_address += 16) {
    struct hp_sample sample = {.address = next_address, .size = size, .weight = weight, .pcs = &pc, .depth = 1};
    hp_recorder_add(&sample);
    struct hp_live_record r;
    if (!keep && hp_recorder_take(next_address, &r)) hp_recorder_count_free(&r);
  }
}

/* The rows of this kind whose frame is pc, summed. */
static int sum(enum hp_profile_kind kind, uintptr_t pc, int64_t v[HP_VALUES], bool done) {
  struct hp_arena arena = {0};
  struct hp_reading reading;
  const struct hp_row *rows;
  size_t count;
  int found = 0;
  for (int i = 0; i < HP_VALUES; i++) v[i] = 0;
  assert_int_equal(hp_books_read(&reading, &arena), 0);
  assert_int_equal(hp_books_rows(&reading, kind, &arena, &rows, &count), 0);
  for (size_t i = 0; i < count; i++) {
    assert_true((rows[i].values[0] | rows[i].values[1] | rows[i].values[2] | rows[i].values[3]) != 0);
    assert_true(kind == HP_KIND_HEAP || (rows[i].values[2] <= rows[i].values[0] && rows[i].values[3] <= rows[i].values[1]));
    assert_false(rows[i].values[0] == 0 && rows[i].values[1] != 0);
    assert_false(rows[i].values[2] == 0 && rows[i].values[3] != 0);
    if (rows[i].depth != 1 || rows[i].pcs[0] != pc) continue;
    found++;
    for (int k = 0; k < HP_VALUES; k++) v[k] += rows[i].values[k];
  }
  if (done) hp_books_delta_done(&reading);
  hp_arena_reset(&arena);
  return found;
}

#define EXPECT(v, a, b, c, d)    \
  do {                           \
    assert_int_equal((v)[0], a); \
    assert_int_equal((v)[1], b); \
    assert_int_equal((v)[2], c); \
    assert_int_equal((v)[3], d); \
  } while (0)

static void e1_e2_kinds_of_one_reading(void **state) {
  (void)state;
  int64_t v[HP_VALUES];
  allocate(0xA, 10, 16, 1, false);
  allocate(0xB, 5, 16, 1, true);
  assert_int_equal(sum(HP_KIND_FULL, 0xA, v, false), 1);
  EXPECT(v, 10, 160, 0, 0);
  assert_int_equal(sum(HP_KIND_HEAP, 0xA, v, false), 0);
  assert_int_equal(sum(HP_KIND_HEAP, 0xB, v, false), 1);
  EXPECT(v, 0, 0, 5, 80);
  sum(HP_KIND_ALLOC, 0xA, v, false);
  assert_int_equal(v[0], 10);
  assert_int_equal(v[1], 160);
}

static void e3_deltas_of_fractions_telescope(void **state) {
  (void)state;
  int64_t v[HP_VALUES], sums[2] = {0}, last[HP_VALUES];
  sum(HP_KIND_DELTA, 0xC, v, true);
  assert_int_equal(sum(HP_KIND_DELTA, 0xA, v, false), 0); /* unchanged rows are absent */
  for (int i = 0; i < 200; i++) {
    allocate(0xC, i % 3, 7, 1.0f + (float)(i % 1024) / 1024, i % 2 == 0);
    sum(HP_KIND_DELTA, 0xC, v, true);
    assert_true(v[0] >= 0 && v[1] >= 0 && v[2] == 0 && v[3] == 0);
    sums[0] += v[0];
    sums[1] += v[1];
    sum(HP_KIND_FULL, 0xC, last, false);
    assert_int_equal(sums[0], last[0]);
    assert_int_equal(sums[1], last[1]);
  }
}

static void e3_a_delta_without_memory_is_not_written_and_nothing_is_lost(void **state) {
  (void)state;
  int64_t v[HP_VALUES];
  for (uintptr_t pc = 0x10000; pc < 0x10000 + 20000; pc++) allocate(pc, 1, 8, 1, false);
  allocate(0xD, 3, 100, 1, false);
  struct hp_arena arena = {0};
  struct hp_reading reading;
  const struct hp_row *rows;
  size_t count;
  assert_int_equal(hp_books_read(&reading, &arena), 0);
  hp_memory_set_ceiling(hp_memory_used() + (1 << 20) + (512 << 10)); /* the rows fit, what must be kept does not */
  assert_int_equal(hp_books_rows(&reading, HP_KIND_DELTA, &arena, &rows, &count), -ENOMEM);
  hp_memory_set_ceiling(SIZE_MAX);
  hp_arena_reset(&arena);
  sum(HP_KIND_DELTA, 0xD, v, true);
  EXPECT(v, 3, 300, 0, 0);
  assert_int_equal(sum(HP_KIND_DELTA, 0xD, v, true), 0);
}

static void reset_leaves_what_is_in_use(void **state) {
  (void)state;
  int64_t v[HP_VALUES];
  allocate(0xE, 10, 16, 1.5f, false);
  allocate(0xE, 4, 16, 1.5f, true);
  assert_int_equal(hp_books_reset(), 0);
  sum(HP_KIND_FULL, 0xE, v, false);
  EXPECT(v, 6, 96, 6, 96);
  sum(HP_KIND_FULL, 0xA, v, false);
  EXPECT(v, 0, 0, 0, 0);
  allocate(0xE, 2, 16, 1, false);
  sum(HP_KIND_FULL, 0xE, v, false);
  EXPECT(v, 8, 128, 6, 96);
}

static void a_reset_without_memory_changes_nothing(void **state) {
  (void)state;
  int64_t before[HP_VALUES], after[HP_VALUES];
  for (uintptr_t pc = 0x50000; pc < 0x50000 + 20000; pc++) allocate(pc, 1, 8, 1, false); /* nothing is kept for these yet */
  allocate(0xE, 5, 16, 1, false);
  sum(HP_KIND_FULL, 0xE, before, false);
  hp_memory_set_ceiling(hp_memory_used());
  assert_int_equal(hp_books_reset(), -ENOMEM);
  hp_memory_set_ceiling(SIZE_MAX);
  sum(HP_KIND_FULL, 0xE, after, false);
  EXPECT(after, before[0], before[1], before[2], before[3]);
  assert_int_equal(hp_books_reset(), 0);
  sum(HP_KIND_FULL, 0xE, after, false);
  EXPECT(after, before[2], before[3], before[2], before[3]);
}

/* ---- each piece of memory refused in turn: put before arena.c by the linker ---- */
void *__real_hp_arena_alloc(struct hp_arena *arena, size_t size);
void *__wrap_hp_arena_alloc(struct hp_arena *arena, size_t size);
static unsigned refused_piece, pieces;
void *__wrap_hp_arena_alloc(struct hp_arena *arena, size_t size) {
  return ++pieces == refused_piece ? NULL : __real_hp_arena_alloc(arena, size);
}

/* 0 or -ENOMEM; then labels may be missing, but no value. */
static int read_and_make_rows(struct hp_arena *arena, int64_t *out_bytes) {
  struct hp_reading reading;
  const struct hp_row *rows;
  size_t count;
  *out_bytes = 0;
  if (hp_books_read(&reading, arena) != 0) return -ENOMEM;
  int result = hp_books_rows(&reading, HP_KIND_FULL, arena, &rows, &count);
  for (size_t i = 0; result == 0 && i < count; i++) *out_bytes += rows[i].values[HP_ALLOC_BYTES];
  return result;
}

static void every_refused_piece_fails_a_reading_or_costs_a_label(void **state) {
  (void)state;
  int64_t whole, bytes;
  unsigned failed = 0;
  hp_recorder_set_labels(HP_LABEL_AGE);
  allocate(0x70, 5, 100, 1, true);
  struct hp_arena arena = {0};
  assert_int_equal(read_and_make_rows(&arena, &whole), 0);
  hp_arena_reset(&arena);
  pieces = 0;
  for (refused_piece = 1; pieces + 1 >= refused_piece; refused_piece++) {
    pieces = 0;
    int result = read_and_make_rows(&arena, &bytes);
    if (result == 0) assert_int_equal(bytes, whole);
    failed += result != 0;
    hp_arena_reset(&arena);
    if (pieces < refused_piece) break;
  }
  assert_int_equal(failed, 5); /* sums of ages, their rows, values, rows, what is loaded */
  pieces = 0;
  refused_piece = 1;
  struct hp_reading peak;
  struct hp_moment moment = hp_moment_now();
  assert_int_equal(hp_books_read_peak(&peak, &arena, &moment), -ENOMEM);
  refused_piece = 0;
  hp_recorder_set_labels(0);
}

static void e6_rows_by_age_add_up(void **state) {
  (void)state;
  int64_t plain[HP_VALUES], aged[HP_VALUES];
  hp_recorder_set_labels(HP_LABEL_AGE);
  for (int i = 0; i < 50; i++) allocate(0xF, 1, 3, 1.0f + (float)i / 1024, i % 3 != 0);
  int rows = sum(HP_KIND_FULL, 0xF, aged, false);
  hp_recorder_set_labels(0);
  assert_int_equal(sum(HP_KIND_FULL, 0xF, plain, false), 1);
  assert_int_equal(rows, 2); /* the live ones, and what is gone */
  for (int k = 0; k < HP_VALUES; k++) assert_int_equal(aged[k], plain[k]);
}

/* ---- the modules of a row, while libraries come and go ---- */
static uint32_t sequence;
static void (*at_next_look)(void);

uint32_t hp_modules_sequence(void) {
  void (*change)(void) = at_next_look;
  at_next_look = NULL;
  if (change != NULL) change();
  return sequence;
}

const struct hp_module_set *hp_modules_loaded(struct hp_arena *arena, uint32_t *out_sequence) {
  struct hp_module_set *set = hp_arena_alloc(arena, sizeof *set);
  if (set == NULL) return NULL;
  set->id = HP_MODULE_SET_LOADED + sequence;
  *out_sequence = sequence;
  return set;
}

const struct hp_module_set *hp_module_set_get(uint32_t id) {
  static struct hp_module_set set;
  set.id = id;
  return &set;
}

enum { MODULE_PC = 0x7000100, MODULE_SET = 77 };

static uint32_t module_set_of(const uintptr_t *pcs, uint32_t depth) {
  (void)pcs;
  (void)depth;
  return MODULE_SET;
}
static bool module_is_back(uint32_t set, const uintptr_t *pcs, uint32_t depth) {
  (void)pcs;
  (void)depth;
  return set == MODULE_SET;
}
static void library_goes(void) {
  hp_stack_table_close_range(MODULE_PC - 0x10, MODULE_PC, module_set_of);
  sequence += 2;
}
static void library_comes(void) {
  hp_stack_table_reopen_range(MODULE_PC - 0x10, MODULE_PC, module_is_back);
  sequence += 2;
}
static void another_library_comes(void) { sequence += 2; }
static void this_thread_was_interrupted_in_a_change(void) { sequence++; }

/* The set of the row of MODULE_PC, when `change` happens while it is being made. */
static uint32_t set_of_row(void (*change)(void)) {
  struct hp_arena arena = {0};
  struct hp_reading reading;
  const struct hp_row *rows;
  size_t count;
  uint32_t set = 0;
  assert_int_equal(hp_books_read(&reading, &arena), 0);
  at_next_look = change;
  assert_int_equal(hp_books_rows(&reading, HP_KIND_FULL, &arena, &rows, &count), 0);
  for (size_t i = 0; i < count; i++) {
    if (rows[i].depth == 1 && rows[i].pcs[0] == MODULE_PC) set = rows[i].modules->id;
  }
  at_next_look = NULL;
  hp_arena_reset(&arena);
  return set;
}

static void a_row_belongs_to_what_was_loaded_when_its_stack_was_open(void **state) {
  (void)state;
  allocate(MODULE_PC, 1, 100, 1, true);
  assert_int_equal(set_of_row(NULL), HP_MODULE_SET_LOADED);
  assert_int_equal(set_of_row(another_library_comes), HP_MODULE_SET_LOADED + 2);
  assert_int_equal(set_of_row(library_goes), MODULE_SET);
  assert_int_equal(set_of_row(NULL), MODULE_SET);
  library_comes();
  assert_int_equal(set_of_row(NULL), HP_MODULE_SET_LOADED + sequence);
  uint32_t set = set_of_row(this_thread_was_interrupted_in_a_change); /* it ends */
  assert_int_equal(set, HP_MODULE_SET_LOADED + sequence);
  sequence++;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      /* first: its stack is the first row */
      cmocka_unit_test_setup(a_row_belongs_to_what_was_loaded_when_its_stack_was_open, set_up),
      cmocka_unit_test(e1_e2_kinds_of_one_reading),
      cmocka_unit_test(e3_deltas_of_fractions_telescope),
      cmocka_unit_test(e3_a_delta_without_memory_is_not_written_and_nothing_is_lost),
      cmocka_unit_test(reset_leaves_what_is_in_use),
      cmocka_unit_test(a_reset_without_memory_changes_nothing),
      cmocka_unit_test(every_refused_piece_fails_a_reading_or_costs_a_label),
      cmocka_unit_test(e6_rows_by_age_add_up)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
