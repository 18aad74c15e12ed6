/* SPDX-License-Identifier: MIT
 * test_allocator_stats.c - the allocator's figures as they are published: none, whole ones, and in a child that was forked while
 * another thread was writing them down. The allocator says it is glibc's. */
#include "allocator_stats.c" /* for the state that a fork leaves */

#include "unit_test.h"

static struct mallinfo2 said;
static struct mallinfo2 say(void) { return said; }
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
      cmocka_unit_test(a_child_has_none_until_it_asks_if_its_parent_was_writing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
