/* SPDX-License-Identifier: MIT
 * test_recorder.c - both tables in step; losses; weights in fixed point. */
#include "budget.h"
#include "hot.h"
#include "recorder.h"
#include "unit_test.h"

static uint8_t no_filter[2 + HP_FILTER_SLACK] __attribute__((aligned(64)));
struct hp_hot hp_hot;

static int set_up(void **state) {
  (void)state;
  hp_hot.filter = (uintptr_t)hp_filter_place(no_filter, 1);
  hp_recorder_track_inuse(true);
  return 0;
}

static const uintptr_t here[] = {0x1001, 0x2002}, there[] = {0x3003, 0x2002};

static void add(uintptr_t address, uint64_t size, float weight, const uintptr_t *pcs) {
  struct hp_sample sample = {.address = address, .size = size, .weight = weight, .pcs = pcs, .depth = 2};
  hp_recorder_add(&sample);
}
static bool release(uintptr_t address) {
  struct hp_live_record r;
  if (!hp_recorder_take(address, &r)) return false;
  hp_recorder_count_free(&r);
  return true;
}
static struct hp_stack *stack_of(const uintptr_t *pcs) { return hp_stack_table_intern(pcs, 2, HP_STACK_WHOLE, 0); }

static void what_is_freed_leaves_nothing_behind(void **state) {
  (void)state;
  struct hp_stack *e = stack_of(here);
  for (uint64_t i = 0; i < 1000; i++) add(16 * (i + 1), i * 7 % 300, (float)(1024 + i * 37) / 1024, here);
  assert_true(hp_recorder_inuse_bytes() > 100000);
  for (uint64_t i = 0; i < 1000; i++) assert_true(release(16 * (i + 1)));
  assert_true(e->alloc_objects == e->freed_objects && e->alloc_bytes == e->freed_bytes);
  assert_int_equal(hp_recorder_inuse_bytes(), 0);
  assert_false(release(16));
}

static void c4_a_missed_free_is_closed_and_counted(void **state) {
  (void)state;
  struct hp_stack *a = stack_of(here), *b = stack_of(there);
  uint64_t missed = hp_recorder_losses.missed_frees, freed_here = a->freed_bytes, freed_there = b->freed_bytes;
  add(64, 100, 1, here);
  add(64, 30, 1, here);
  assert_int_equal(a->freed_bytes - freed_here, 100 << HP_BYTE_FRACTION_BITS);
  add(64, 7, 1, there);
  assert_int_equal(a->freed_bytes - freed_here, 130 << HP_BYTE_FRACTION_BITS);
  assert_int_equal(b->freed_bytes, freed_there);
  assert_int_equal(hp_recorder_losses.missed_frees - missed, 2);
  assert_true(release(64));
  assert_int_equal(b->freed_bytes - freed_there, 7 << HP_BYTE_FRACTION_BITS);
}

static void b7_what_has_no_record_is_not_in_use(void **state) {
  (void)state;
  struct hp_stack *a = stack_of(here);
  uint64_t full = hp_recorder_losses.live_table_full, alloc = a->alloc_objects, freed = a->freed_objects;
  hp_live_table_test_limit(hp_live_table_count() + 10);
  for (uintptr_t i = 1; i <= 100; i++) add(i * 32, 1, 1, here);
  hp_live_table_test_limit(0);
  assert_int_equal((a->alloc_objects - alloc) >> HP_OBJECT_FRACTION_BITS, 100);
  assert_int_equal((a->freed_objects - freed) >> HP_OBJECT_FRACTION_BITS, 90);
  assert_int_equal(hp_recorder_losses.live_table_full - full, 90);
  for (uintptr_t i = 1; i <= 100; i++) release(i * 32);
  assert_int_equal(a->alloc_objects - alloc, a->freed_objects - freed);
}

/* A realloc failed, and meanwhile its record's place was taken. */
static void c3_what_cannot_be_put_back_is_counted_as_freed(void **state) {
  (void)state;
  enum { BLOCKS = 20000 };
  static bool has_record[BLOCKS];
  struct hp_stack *a = stack_of(here), *b = stack_of(there);
  struct hp_live_record taken, again;
  add(1 << 20, 100, 1, here);
  uint64_t freed = a->freed_bytes;
  assert_true(hp_recorder_take(1 << 20, &taken));
  hp_memory_set_ceiling(1); /* no new page from here on */
  for (uintptr_t i = 0; i < BLOCKS; i++) {
    uint64_t lost = hp_recorder_losses.live_table_full;
    add((2 << 20) + 16 * i, 1, 1, there);
    has_record[i] = hp_recorder_losses.live_table_full == lost;
  }
  uint64_t full = hp_recorder_losses.live_table_full;
  hp_recorder_put_back(&taken);
  hp_memory_set_ceiling(SIZE_MAX);
  assert_int_equal(hp_recorder_losses.live_table_full - full, 1);
  assert_int_equal(a->freed_bytes - freed, 100 << HP_BYTE_FRACTION_BITS);
  assert_false(hp_recorder_take(1 << 20, &again));
  for (uintptr_t i = 0; i < BLOCKS; i++) assert_int_equal(release((2 << 20) + 16 * i), has_record[i]);
  assert_int_equal(b->alloc_bytes, b->freed_bytes);
}

static void a4_a_size_that_does_not_fit_is_cut_on_both_sides(void **state) {
  (void)state;
  struct hp_stack *b = stack_of(there);
  add(128, UINT64_MAX, 1, there);
  add(256, (uint64_t)1 << 48, 1, there);
  assert_true(release(128) && release(256));
  assert_true(b->alloc_bytes == b->freed_bytes);
}

static void d10_sums_of_large_weights_are_exact_or_saturated(void **state) {
  (void)state;
  const uintptr_t far[] = {0x9001, 0x9002};
  for (uintptr_t i = 0; i < 1 << 10; i++) add((i + 1) << 20, 1 << 20, 0x1p34f, far);
  struct hp_stack *e = stack_of(far);
  assert_true(e->alloc_objects == (uint64_t)1 << (10 + 34 + HP_OBJECT_FRACTION_BITS));
  assert_true(e->alloc_bytes == UINT64_MAX); /* 2^64 bytes: more than 60 bits of them */
  assert_true(hp_stack_table_saturated());
  for (uintptr_t i = 0; i < 1 << 10; i++) assert_true(release((i + 1) << 20));
  assert_true(hp_fixed_bytes(0x1p44f, (uint64_t)1 << 40) == UINT64_MAX);
}

static void a_sample_without_a_stack_is_counted_on_the_pseudo_entry(void **state) {
  (void)state;
  uint64_t failed = hp_recorder_losses.unwind_failed;
  struct hp_stack *none = hp_stack_table_get(HP_STACK_ID_NONE);
  uint64_t bytes = none->alloc_bytes;
  struct hp_sample sample = {.address = 48, .size = 10, .weight = 1, .pcs = here, .depth = 0};
  hp_recorder_add(&sample);
  assert_int_equal(hp_recorder_losses.unwind_failed - failed, 1);
  assert_int_equal(none->alloc_bytes - bytes, 10 << HP_BYTE_FRACTION_BITS);
  assert_true(release(48));
  assert_int_equal(none->alloc_bytes, none->freed_bytes);
}

static uint32_t one_module(const uintptr_t *pcs, uint32_t depth) {
  (void)pcs;
  return depth;
}

/* The memo says which entry these very pcs have: looked up once, but never for another label, nor once that entry is closed. */
static void a_memo_stands_for_the_look_up(void **state) {
  (void)state;
  static const uintptr_t mine[] = {0x5005, 0x6006, 0x7007}, wrong[] = {0x8008, 0x9009, 0xA00A};
  struct hp_memo memo = {0};
  struct hp_sample sample = {.address = 80, .size = 8, .weight = 1, .pcs = mine, .depth = 3, .memo = &memo};
  sample.tail = (struct hp_hash_tail){.count = 2, .sum = hp_hash_sum(mine + 1, 2, 0)};
  hp_recorder_add(&sample);
  struct hp_stack *e = hp_stack_table_intern(mine, 3, HP_STACK_WHOLE, 0);
  assert_ptr_equal(memo.value, e);
  sample.address = 96;
  sample.pcs = wrong; /* would be another entry, were it looked up */
  hp_recorder_add(&sample);
  assert_int_equal(e->alloc_objects, 2 << HP_OBJECT_FRACTION_BITS);
  sample.pcs = mine;
  memo.key = 1;
  sample.address = 112;
  hp_recorder_add(&sample);
  assert_int_equal(e->alloc_objects, 3 << HP_OBJECT_FRACTION_BITS);
  assert_int_equal(memo.key, 0);
  hp_stack_table_close_range(0x5000, 0x5FFF, one_module);
  sample.address = 128;
  hp_recorder_add(&sample);
  assert_int_equal(e->alloc_objects, 3 << HP_OBJECT_FRACTION_BITS);
  assert_ptr_not_equal(memo.value, e);
  for (uintptr_t address = 80; address <= 128; address += 16) assert_true(release(address));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_freed_leaves_nothing_behind),
                                     cmocka_unit_test(c4_a_missed_free_is_closed_and_counted),
                                     cmocka_unit_test(c3_what_cannot_be_put_back_is_counted_as_freed),
                                     cmocka_unit_test(b7_what_has_no_record_is_not_in_use),
                                     cmocka_unit_test(a4_a_size_that_does_not_fit_is_cut_on_both_sides),
                                     cmocka_unit_test(a_memo_stands_for_the_look_up),
                                     cmocka_unit_test(a_sample_without_a_stack_is_counted_on_the_pseudo_entry),
                                     cmocka_unit_test(d10_sums_of_large_weights_are_exact_or_saturated)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
