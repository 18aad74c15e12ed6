/* SPDX-License-Identifier: MIT
 * test_stack_table.c - A3, A4, A5, D10: hash and equality agree; narrow fields are checked; counters saturate. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "hot.h"
#include "stack_table.h"
#include "unit_test.h"

struct hp_hot hp_hot;

enum { MAX = 1024 };
static uintptr_t frames[70000];

static struct hp_stack *intern(const uintptr_t *pcs, uint32_t depth) {
  return hp_stack_table_intern(pcs, depth, HP_STACK_WHOLE, 0);
}

/* The entry is found again, holds what was put in, and no other key finds it. */
static void round_trip(const uintptr_t *pcs, uint32_t depth) {
  uint32_t before = hp_stack_table_count();
  struct hp_stack *e = intern(pcs, depth);
  assert_int_equal(e->depth, depth);
  assert_memory_equal(e->pcs, pcs, depth * sizeof pcs[0]);
  assert_ptr_equal(intern(pcs, depth), e);
  assert_ptr_equal(hp_stack_table_get(e->id), e);
  assert_in_range(hp_stack_table_count(), before, before + 1);
  static uintptr_t other[MAX + 1];
  memcpy(other, pcs, depth * sizeof pcs[0]);
  for (uint32_t i = 0; i < depth; i += depth / 5 + 1) { /* one frame different */
    other[i] ^= 0x10;
    assert_ptr_not_equal(intern(other, depth), e);
    other[i] ^= 0x10;
  }
  if (depth > 1) {
    assert_ptr_not_equal(intern(pcs, depth - 1), e);
    assert_ptr_not_equal(intern(pcs + 1, depth - 1), e);
    if (pcs[0] != pcs[depth - 1]) { /* a permutation */
      other[0] = pcs[depth - 1];
      other[depth - 1] = pcs[0];
      assert_ptr_not_equal(intern(other, depth), e);
    }
  }
  assert_ptr_not_equal(hp_stack_table_intern(pcs, depth, HP_STACK_TRUNCATED, 0), e);
  assert_ptr_not_equal(hp_stack_table_intern(pcs, depth, HP_STACK_WHOLE, 1 << 16), e);
  assert_ptr_equal(intern(pcs, depth), e);
}

static void keys_agree(void) {
  for (uint32_t i = 0; i < MAX + 1; i++) frames[i] = 0x400000 + i * 12;
  assert_int_equal(intern(frames, 0)->id, HP_STACK_ID_NONE);
  static const uint32_t depths[] = {1, 2, 3, 64, MAX, MAX + 1};
  for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) round_trip(frames, depths[i]);
  const uintptr_t ends[][2] = {{0, UINTPTR_MAX}, {UINTPTR_MAX, 0}, {0, 0}, {UINTPTR_MAX, UINTPTR_MAX}};
  for (int i = 0; i < 4; i++) round_trip(ends[i], 2);
  round_trip(ends[0], 1);
  round_trip(ends[1], 1);
  for (uint32_t i = 0; i < 100; i++) frames[i] = 0x401234; /* recursion */
  struct hp_stack *shorter = intern(frames, 99);
  assert_ptr_not_equal(shorter, intern(frames, 100));
}

static void a3_hash_and_equality_agree(void **state) {
  (void)state;
  keys_agree();
}

static void a3_and_with_every_hash_equal(void **state) {
  (void)state;
  hp_stack_table_test_force_hash(true);
  keys_agree();
  hp_stack_table_test_force_hash(false);
}

static void a4_a_depth_of_more_than_16_bits_is_cut_not_wrapped(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 65541; i++) frames[i] = 0x700000 + i;
  struct hp_stack *e = intern(frames, 65541); /* 65541 - 65536 = 5 */
  assert_int_equal(e->depth, 65535);
  assert_int_equal(e->kind, HP_STACK_TRUNCATED);
  assert_memory_equal(e->pcs, frames, 65535 * sizeof frames[0]);
  assert_ptr_not_equal(e, intern(frames, 5));
}

static void a4_d10_counters_stop_at_their_end(void **state) {
  (void)state;
  struct hp_stack *e = intern((uintptr_t[]){0x123}, 1);
  assert_false(hp_stack_table_saturated());
  hp_stack_add_alloc(e, UINT64_MAX - 5, 100);
  assert_false(hp_stack_table_saturated());
  hp_stack_add_alloc(e, 10, 100);
  assert_true(e->alloc_objects == UINT64_MAX);
  assert_int_equal(e->alloc_bytes, 200);
  assert_true(hp_stack_table_saturated());
  hp_stack_add_alloc(e, 1 << 20, 0);
  assert_true(e->alloc_objects >= UINT64_MAX - 1); /* never small again */
}

/* Modules as numbers: a stack belongs to number current_set, and is back when it is asked for with that. */
static uint32_t current_set;
static uint32_t set_of(const uintptr_t *pcs, uint32_t depth) {
  assert_int_equal(depth, 2);
  assert_int_equal(pcs[1], 0x500000);
  return current_set;
}
static bool is_back(uint32_t set, const uintptr_t *pcs, uint32_t depth) {
  assert_int_equal(set_of(pcs, depth), current_set);
  return set == current_set;
}
static void swap_modules(uint32_t next) {
  hp_stack_table_close_range(0x900000, 0x900020, set_of);
  current_set = next;
  hp_stack_table_reopen_range(0x900000, 0x900020, is_back);
}

static void closed_entries_keep_their_counters_and_are_not_found(void **state) {
  (void)state;
  uintptr_t pcs[] = {0x900010, 0x500000};
  struct hp_stack *e = intern(pcs, 2);
  hp_stack_add_alloc(e, 7, 7);
  current_set = 3;
  hp_stack_table_close_range(0x900010, 0x900020, set_of); /* (start, end] */
  assert_ptr_equal(intern(pcs, 2), e);
  hp_stack_table_close_range(0x900000, 0x900010, set_of);
  struct hp_stack *fresh = intern(pcs, 2);
  assert_ptr_not_equal(fresh, e);
  assert_int_equal(e->closed_set, 3);
  assert_int_equal(e->alloc_objects, 7);
  assert_int_equal(fresh->alloc_objects, 0);
  current_set = 4;
  hp_stack_table_close_range(0x900000, 0x900010, set_of);
  assert_int_equal(e->closed_set, 3); /* whose it was, not who left last */
  assert_int_equal(fresh->closed_set, 4);
}

static void a_module_that_is_back_finds_its_entries_and_nobody_elses(void **state) {
  (void)state;
  enum { MODULES = 5, STACKS = 100, ROUNDS = 1000 };
  static struct hp_stack *known[MODULES][STACKS];
  uint32_t before = hp_stack_table_count();
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint32_t module = round * 3 % MODULES;
    swap_modules(10 + module);
    for (uintptr_t i = 0; i < STACKS; i++) {
      uintptr_t pcs[] = {0x900001 + i % 0x20, 0x500000};
      struct hp_stack *e = hp_stack_table_intern(pcs, 2, HP_STACK_WHOLE, (i / 0x20 + 1) << 16);
      if (known[module][i] == NULL) {
        known[module][i] = e;
        for (uint32_t other = 0; other < MODULES; other++) assert_true(other == module || known[other][i] != e);
      }
      assert_ptr_equal(e, known[module][i]);
      assert_int_equal(e->closed_set, 0);
      hp_stack_add_alloc(e, 1, module);
    }
  }
  assert_int_equal(hp_stack_table_count() - before, MODULES * STACKS);
  for (uint32_t module = 0; module < MODULES; module++) {
    for (uint32_t i = 0; i < STACKS; i++) {
      assert_int_equal(known[module][i]->alloc_objects, ROUNDS / MODULES);
      assert_int_equal(known[module][i]->alloc_bytes, module * (ROUNDS / MODULES));
    }
  }
}

static void a5_a_full_table_refuses_and_keeps_what_it_has(void **state) {
  (void)state;
  uintptr_t first[] = {1, 2}, pcs[] = {0, 3};
  struct hp_stack *known = intern(first, 2);
  hp_memory_set_ceiling(hp_memory_used() + (1 << 20));
  int refused = 0;
  for (uintptr_t i = 0; i < 1000000; i++) {
    pcs[0] = 0x10000000 + i;
    refused += intern(pcs, 2)->id == HP_STACK_ID_FULL;
  }
  assert_true(refused > 900000);
  assert_ptr_equal(intern(first, 2), known);
  hp_memory_set_ceiling(SIZE_MAX);
  pcs[0] = 0x10000000 + 999999;
  assert_int_not_equal(intern(pcs, 2)->id, HP_STACK_ID_FULL);
}

enum { THREADS = 4, EACH = 20000 };
static void *intern_all(void *argument) {
  for (uintptr_t i = 0; i < EACH; i++) {
    uintptr_t pcs[3] = {0x20000000 + i, i % 7, 9};
    hp_stack_add_alloc(intern(pcs, 3), 1, i);
  }
  return argument;
}

static void threads_that_meet_at_a_new_stack_make_one_entry(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  uint32_t before = hp_stack_table_count();
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, intern_all, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(hp_stack_table_count() - before, EACH);
  for (uintptr_t i = 0; i < EACH; i++) {
    uintptr_t pcs[3] = {0x20000000 + i, i % 7, 9};
    struct hp_stack *e = intern(pcs, 3);
    assert_int_equal(e->alloc_objects, THREADS);
    assert_int_equal(e->alloc_bytes, THREADS * i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a3_hash_and_equality_agree),
                                     cmocka_unit_test(a3_and_with_every_hash_equal),
                                     cmocka_unit_test(a4_a_depth_of_more_than_16_bits_is_cut_not_wrapped),
                                     cmocka_unit_test(a4_d10_counters_stop_at_their_end),
                                     cmocka_unit_test(closed_entries_keep_their_counters_and_are_not_found),
                                     cmocka_unit_test(a_module_that_is_back_finds_its_entries_and_nobody_elses),
                                     cmocka_unit_test(a5_a_full_table_refuses_and_keeps_what_it_has),
                                     cmocka_unit_test(threads_that_meet_at_a_new_stack_make_one_entry)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
