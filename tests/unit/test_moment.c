/* SPDX-License-Identifier: MIT
 * test_moment.c - the time between two moments, also when the wall clock is set in between. */
#include "moment.h"

#include "unit_test.h"

#define SECOND ((int64_t)1000000000)

static int64_t between(int64_t wall, int64_t elapsed) {
  const struct hp_moment from = {.wall_nanos = 5 * SECOND, .elapsed_nanos = 70 * SECOND};
  const struct hp_moment to = {.wall_nanos = from.wall_nanos + wall, .elapsed_nanos = from.elapsed_nanos + elapsed};
  return hp_moment_between(from, to);
}

static void the_wall_clock_counts_unless_it_was_set(void **state) {
  (void)state;
  assert_int_equal(between(0, 0), 0);
  assert_int_equal(between(60 * SECOND + 7, 60 * SECOND + 4000), 60 * SECOND + 7);
  assert_int_equal(between(61 * SECOND, 60 * SECOND), 61 * SECOND); /* as much as waiting between two readings makes */
  assert_int_equal(between(59 * SECOND, 60 * SECOND), 59 * SECOND);
  assert_int_equal(between(61 * SECOND + 1, 60 * SECOND), 60 * SECOND);
  assert_int_equal(between(59 * SECOND - 1, 60 * SECOND), 60 * SECOND);
  assert_int_equal(between(-3600 * SECOND, 60 * SECOND), 60 * SECOND);             /* set back by an hour */
  assert_int_equal(between(56 * 31557600 * SECOND, 60 * SECOND), 60 * SECOND);     /* out of 1970 */
  assert_int_equal(between(-SECOND / 2, 0), 0);                                    /* never negative: slewed, or read late */
  assert_int_equal(between(-60 * SECOND, -60 * SECOND), 0);                        /* not later at all */
}

static void now_goes_on_by_both_clocks(void **state) {
  (void)state;
  struct hp_moment first = hp_moment_now(), second = hp_moment_now();
  while (second.elapsed_nanos == first.elapsed_nanos) second = hp_moment_now();
  assert_true(first.wall_nanos > 1600000000 * SECOND && first.elapsed_nanos > 0);
  assert_true(second.elapsed_nanos > first.elapsed_nanos);
  assert_true(hp_moment_between(first, second) >= 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_wall_clock_counts_unless_it_was_set),
      cmocka_unit_test(now_goes_on_by_both_clocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
