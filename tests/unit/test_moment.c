/* SPDX-License-Identifier: MIT
 * test_moment.c - the time between two moments, also when the wall clock is set in between. */
#include "moment.h"

#include "unit_test.h"

#define SECOND ((int64_t)1000000000)
#define YEAR (31557600 * SECOND)

/* A process that starts when the wall clock stands at `start`, 70 s after the machine. */
struct clocks {
  struct hp_clock_offset offset;
  int64_t start, first;
};

static struct clocks begin(int64_t start) {
  struct clocks c = {.start = start};
  c.first = hp_moment_even(&c.offset, start, 70 * SECOND);
  return c;
}

/* How much later is it by the even clock when the two clocks say so? */
static int64_t later(struct clocks *c, int64_t wall, int64_t elapsed) {
  return hp_moment_even(&c->offset, c->start + wall, 70 * SECOND + elapsed) - c->first;
}

static void it_is_the_wall_clock_while_nobody_sets_that(void **state) {
  (void)state;
  struct clocks c = begin(56 * YEAR);
  assert_int_equal(later(&c, 0, 0), 0);
  assert_int_equal(later(&c, 60 * SECOND + 7, 60 * SECOND + 4000), 60 * SECOND + 7); /* read one after the other */
  assert_int_equal(later(&c, 61 * SECOND, 60 * SECOND), 61 * SECOND);
  assert_int_equal(later(&c, 59 * SECOND, 60 * SECOND), 59 * SECOND);
  assert_int_equal(c.offset.nanos, c.offset.first_nanos);
}

static void a_setting_is_taken_out(void **state) {
  (void)state;
  for (int start = 0; start < 3; start++) {
    struct clocks c = begin(start == 0 ? 0 : start == 1 ? 70 * SECOND + 3 : 30 * YEAR);
    assert_int_equal(later(&c, 10 * SECOND, 10 * SECOND), 10 * SECOND);
    assert_int_equal(later(&c, 60 * SECOND + 56 * YEAR, 60 * SECOND), 60 * SECOND); /* out of 1970 */
    /* From then on to the nanosecond by the wall clock, whatever the other one reads a moment later. */
    assert_int_equal(later(&c, 90 * SECOND + 56 * YEAR + 3, 90 * SECOND + 500), 90 * SECOND + 3);
    assert_int_equal(later(&c, 100 * SECOND - YEAR, 100 * SECOND), 100 * SECOND); /* and back */
    assert_int_equal(later(&c, 101 * SECOND - YEAR + 5, 101 * SECOND), 101 * SECOND + 5);
  }
}

/* A device whose wall clock began at 0 with the machine: no offset is none yet. */
static void no_offset_is_one(void **state) {
  (void)state;
  struct clocks c = begin(70 * SECOND);
  int64_t span = later(&c, 60 * SECOND + 56 * YEAR, 60 * SECOND);
  assert_true(span >= 60 * SECOND && span <= 60 * SECOND + 1);
  assert_int_equal(later(&c, 90 * SECOND + 56 * YEAR, 90 * SECOND) - span, 30 * SECOND);
}

static void between_is_never_negative(void **state) {
  (void)state;
  const struct hp_moment a = {.wall_nanos = 7, .even_nanos = 100}, b = {.wall_nanos = 3, .even_nanos = 160};
  assert_int_equal(hp_moment_between(a, b), 60);
  assert_int_equal(hp_moment_between(b, a), 0);
}

static void now_goes_on(void **state) {
  (void)state;
  struct hp_moment first = hp_moment_now(), second = first;
  for (long i = 0; second.even_nanos == first.even_nanos && i < 100000000; i++) second = hp_moment_now();
  assert_true(first.wall_nanos > 30 * YEAR);
  assert_true(second.even_nanos > first.even_nanos);
  assert_int_equal(second.even_nanos - first.even_nanos, second.wall_nanos - first.wall_nanos);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_the_wall_clock_while_nobody_sets_that),
      cmocka_unit_test(a_setting_is_taken_out),
      cmocka_unit_test(no_offset_is_one),
      cmocka_unit_test(between_is_never_negative),
      cmocka_unit_test(now_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
