/* SPDX-License-Identifier: MIT
 * test_arena.c - bump memory from mmap. */
#include <string.h>

#include "arena.h"
#include "budget.h"
#include "forbid_memory.h"
#include "unit_test.h"

static void pieces_are_zero_aligned_and_apart(void **state) {
  (void)state;
  struct hp_arena arena = {0};
  size_t base = hp_memory_used();
  for (int round = 0; round < 2; round++) {
    char *before = NULL;
    for (size_t i = 0; i < 3000; i++) {
      size_t n = i % 500 + 1;
      char *p = hp_arena_alloc(&arena, n);
      assert_non_null(p);
      assert_int_equal((uintptr_t)p % 16, 0);
      for (size_t k = 0; k < n; k++) assert_int_equal(p[k], 0);
      memset(p, 0x55, n);
      if (before != NULL) assert_int_equal(before[0], 0x55);
      before = p;
    }
    assert_true(hp_memory_used() > base);
    hp_arena_reset(&arena);
    assert_int_equal(hp_memory_used(), base);
    assert_int_equal(arena.mapped_bytes, 0);
  }
}

static void large_pieces_get_their_own_chunk_and_copies_end_in_0(void **state) {
  (void)state;
  struct hp_arena arena = {.chunk_bytes = 4096};
  char *big = hp_arena_alloc(&arena, 3 << 20);
  assert_non_null(big);
  memset(big, 1, 3 << 20);
  char *copy = hp_arena_copy(&arena, "abcdef", 3);
  assert_string_equal(copy, "abc");
  assert_non_null(hp_arena_zalloc(&arena, 100, 7));
  hp_arena_zfree(&arena, copy);
  assert_string_equal(copy, "abc");
  hp_arena_reset(&arena);
}

static void the_ceiling_and_overflow_are_refused(void **state) {
  (void)state;
  struct hp_arena arena = {0};
  assert_null(hp_arena_alloc(&arena, SIZE_MAX));
  assert_null(hp_arena_alloc(&arena, SIZE_MAX - 64));
  hp_memory_set_ceiling(hp_memory_used() + 300000);
  assert_non_null(hp_arena_alloc(&arena, 1000));
  assert_null(hp_arena_alloc(&arena, 280000));
  assert_non_null(hp_arena_alloc(&arena, 1000)); /* what is there may still be used */
  hp_arena_reset(&arena);
  hp_memory_set_ceiling(SIZE_MAX);
}

static void without_memory_a_piece_is_refused_and_costs_nothing(void **state) {
  (void)state;
  struct hp_arena arena = {0};
  struct rlimit before;
  size_t base = hp_memory_used();
  forbid_memory(&before);
  void *piece = hp_arena_alloc(&arena, 100);
  char *copy = hp_arena_copy(&arena, "abc", 3);
  setrlimit(RLIMIT_AS, &before);
  assert_null(piece);
  assert_null(copy);
  assert_int_equal(hp_memory_used(), base);
  assert_non_null(hp_arena_alloc(&arena, 100));
  hp_arena_reset(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_are_zero_aligned_and_apart),
                                     cmocka_unit_test(large_pieces_get_their_own_chunk_and_copies_end_in_0),
                                     cmocka_unit_test(the_ceiling_and_overflow_are_refused),
                                     cmocka_unit_test(without_memory_a_piece_is_refused_and_costs_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
