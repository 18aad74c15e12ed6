/* SPDX-License-Identifier: MIT
 * test_allocator_stats.c - the allocator's figures as they are published: none, whole ones, and in a child that was forked while
 * another thread was writing them down. The allocator says it is glibc's. */
#include "allocator_stats.c" /* for the state that a fork leaves */

#include "hot.h"
#include "unit_test.h"

struct hp_hot hp_hot;

static struct mallinfo2 said;
static struct hp_stack *freed_meanwhile;
static struct mallinfo2 say(void) {
  if (freed_meanwhile != NULL)
    hp_stack_add_free(freed_meanwhile, 1 << HP_OBJECT_FRACTION_BITS, 1000 << HP_BYTE_FRACTION_BITS);
  freed_meanwhile = NULL;
  return said;
}
void *hp_next_find(const char *name) { return strcmp(name, "mallinfo2") == 0 ? (void *)say : NULL; }

static struct hp_allocator_figures get(void) {
  struct hp_allocator_figures figures;
  hp_allocator_figures_get(&figures);
  assert_string_equal(figures.name, "glibc");
  return figures;
}

static void figures_are_there_after_a_refresh(void **state) {
  (void)state;
  hp_allocator_stats_init();
  assert_false(get().has_figures);
  said = (struct mallinfo2){.arena = 5000, .uordblks = 3000, .fordblks = 2000, .hblkhd = 70000};
  hp_allocator_figures_refresh();
  said.uordblks = 4000;
  struct hp_allocator_figures figures = get(); /* of the last refresh */
  assert_true(figures.has_figures);
  assert_int_equal(figures.inuse_bytes, 73000);
  assert_int_equal(figures.free_bytes, 2000);
  assert_int_equal(figures.mmap_bytes, 70000);
  assert_int_equal(figures.system_bytes, 75000);
  hp_allocator_figures_refresh();
  assert_int_equal(get().inuse_bytes, 74000);
}

static void the_books_are_of_before_the_allocator_answered(void **state) {
  (void)state;
  const uintptr_t here[] = {0x1001};
  uint32_t number = get().number;
  freed_meanwhile = hp_stack_table_intern(here, 1, HP_STACK_WHOLE, 0);
  hp_stack_add_alloc(freed_meanwhile, 1 << HP_OBJECT_FRACTION_BITS, 1000 << HP_BYTE_FRACTION_BITS);
  hp_allocator_figures_refresh();
  assert_true(get().totals.inuse_objects == 1 && get().totals.inuse_bytes == 1000);
  assert_int_not_equal(get().number, number);
  number = get().number;
  assert_int_equal(get().number, number);
  hp_allocator_figures_refresh();
  assert_true(get().totals.inuse_objects == 0 && get().totals.inuse_bytes == 0);
  assert_true(get().totals.alloc_objects == 1 && get().totals.alloc_bytes == 1000);
}

static void a_child_has_none_until_it_asks_if_its_parent_was_writing(void **state) {
  (void)state;
  hp_allocator_figures_refresh();
  hp_allocator_figures_after_fork(); /* nobody was */
  assert_true(get().has_figures);
  sequence++; /* as a writer leaves it */
  published.inuse_bytes = UINT64_MAX;
  assert_false(get().has_figures);
  hp_allocator_figures_after_fork();
  assert_false(get().has_figures);
  hp_allocator_figures_refresh();
  assert_true(get().has_figures);
  assert_int_equal(get().inuse_bytes, 74000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(figures_are_there_after_a_refresh),
      cmocka_unit_test(the_books_are_of_before_the_allocator_answered),
      cmocka_unit_test(a_child_has_none_until_it_asks_if_its_parent_was_writing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
