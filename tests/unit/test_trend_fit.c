/* SPDX-License-Identifier: MIT
 * test_trend_fit.c - growth of memory is told from luck and from churn (src/cli/trend_fit.h).
 *
 * The simulator is a Poisson sampler of births and deaths: blocks of one stack are born at a rate, sampled with probability
 * p = 1-exp(-s/R), and live exponentially long, so between two dumps the sampled live blocks are thinned binomially and
 * joined by a Poisson number of new ones; the estimate is their number times s/p. Seeds are fixed: a run is the same every
 * time.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trend_fit.h"

#define RUNS 50
#define STACKS 400
#define DUMPS 20
#define FOREVER 1e12 /* hours */

static uint64_t random_state;

static double random_unit(void) { /* splitmix64, in (0, 1) */
  uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double random_normal(void) { return sqrt(-2 * log(random_unit())) * cos(6.283185307179586 * random_unit()); }

static double random_poisson(double mean) {
  if (mean > 500) return fmax(0, floor(mean + sqrt(mean) * random_normal() + 0.5));
  double limit = exp(-mean), product = random_unit();
  double n = 0;
  for (; product > limit; n++) product *= random_unit();
  return n;
}

static double random_binomial(double n, double p) {
  if (n * p > 500 && n * (1 - p) > 500)
    return fmin(n, fmax(0, floor(n * p + sqrt(n * p * (1 - p)) * random_normal() + 0.5)));
  double hits = 0;
  for (double i = 0; i < n; i++) hits += random_unit() < p;
  return hits;
}

/* One call site. */
struct site {
  double size;     /* bytes a block */
  double births;   /* blocks an hour at load 1 */
  double life;     /* mean, hours */
  double fills_by; /* 0: steady; else births fade with this time constant, hours (a cache that warms up) */
  double start_up; /* blocks that are there before the second dump and stay */
  bool is_old;     /* in its steady state at the first dump */
};

static double hours[400], bytes[STACKS + 1][400], objects[STACKS + 1][400], load[400];

static void simulate(const struct site *site, double rate, size_t dumps, double *out_bytes, double *out_objects) {
  double p = -expm1(-site->size / rate);
  double live = site->is_old ? random_poisson(site->births * p * fmin(site->life, 1e6)) : 0;
  for (size_t k = 0; k < dumps; k++) {
    double dt = k == 0 ? hours[1] - hours[0] : hours[k] - hours[k - 1];
    double stay = exp(-dt / site->life);
    double fade = site->fills_by > 0 ? exp(-hours[k] / site->fills_by) : 1;
    double born = site->births * p * load[k] * fade * (site->life > 1e9 ? dt : site->life * (1 - stay));
    live = random_binomial(live, stay) + random_poisson(born);
    if (k == 1) live += random_poisson(site->start_up * p);
    out_objects[k] = live / p;
    out_bytes[k] = live * site->size / p;
  }
}

/* A server without a leak: churn of all life times, from a millisecond to many times the run, old and young; caches that
 * warm up; permanent start-up structures; a load that wanders by some 10 %. About 200 MB in all. */
static void random_site(struct site *site) {
  memset(site, 0, sizeof *site);
  site->size = floor(exp(random_unit() * log(65536.0 / 16)) * 16);
  site->life = exp(random_unit() * 16 - 12); /* 6e-6 to 50 hours */
  double held = 200e6 / STACKS * -log(random_unit());
  site->births = held / site->size / site->life;
  site->is_old = random_unit() < 0.8;
  if (!site->is_old && site->life > 0.05) site->life = 0.05; /* young and longer-lived is growth, in truth */
  double kind = random_unit();
  if (kind < 0.1) {
    site->fills_by = 0.07 * random_unit() + 0.005;
    site->life = FOREVER;
    site->is_old = false;
    site->births = held / site->size / site->fills_by;
  } else if (kind < 0.2) {
    site->start_up = held / site->size;
  }
}

static void make_times(size_t dumps, double minutes) {
  double wander = 0;
  for (size_t k = 0; k < dumps; k++) {
    hours[k] = (double)k * minutes / 60;
    wander = 0.5 * wander + 0.1 * random_normal();
    load[k] = exp(wander);
  }
}

static int by_p(const void *a, const void *b) {
  double p = (*(struct hp_trend_fit *const *)a)->p_value, q = (*(struct hp_trend_fit *const *)b)->p_value;
  return p < q ? -1 : p > q;
}

/* Fits `count` stacks and corrects; the number of suspects. */
static size_t judge(size_t count, size_t dumps, double rate, struct hp_trend_fit *fits) {
  static struct hp_trend_fit *order[STACKS + 1];
  for (size_t i = 0; i < count; i++) {
    struct hp_trend_points points = {hours, bytes[i], objects[i], dumps, (int64_t)rate};
    hp_trend_fit(&points, &fits[i]);
    order[i] = &fits[i];
  }
  qsort(order, count, sizeof *order, by_p);
  hp_trend_correct(order, count);
  size_t suspects = 0;
  for (size_t i = 0; i < count; i++) suspects += fits[i].is_suspect;
  return suspects;
}

static struct hp_trend_fit fits[STACKS + 1];

static void run_without_leak(double rate, size_t dumps, double minutes) {
  struct site site;
  make_times(dumps, minutes);
  for (size_t i = 0; i < STACKS; i++) {
    random_site(&site);
    simulate(&site, rate, dumps, bytes[i], objects[i]);
  }
  assert_int_equal(judge(STACKS, dumps, rate, fits), 0);
}

static void test_fifty_runs_without_a_leak_name_nothing(void **state) {
  (void)state;
  random_state = 1;
  for (int run = 0; run < RUNS; run++) run_without_leak(run % 2 == 0 ? 16384 : 524288, DUMPS, 1);
}

static void test_long_series_without_a_leak_name_nothing(void **state) {
  (void)state;
  random_state = 2;
  for (int run = 0; run < 10; run++) run_without_leak(65536, 200, 1);
}

static bool is_first(size_t which, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (i != which && hp_trend_fit_compare(&fits[i], &fits[which]) <= 0) return false;
  return true;
}

/* 1 KiB for every 1000 requests, 2000 requests a second, a dump a minute: 120 KiB a dump among 200 MB of churn. It is first
 * in every list; now and then (at most 3 of 50 runs) the swings of the load keep it from being called a suspect. */
static void test_planted_leak_is_first_within_20_dumps(void **state) {
  (void)state;
  size_t named = 0;
  random_state = 3;
  for (int run = 0; run < RUNS; run++) {
    double rate = 16384;
    make_times(DUMPS, 1);
    for (size_t i = 0; i < STACKS; i++) {
      struct site site;
      random_site(&site);
      simulate(&site, rate, DUMPS, bytes[i], objects[i]);
    }
    struct site leak = {.size = 1024, .births = 2 * 3600, .life = FOREVER};
    simulate(&leak, rate, DUMPS, bytes[STACKS], objects[STACKS]);
    size_t suspects = judge(STACKS + 1, DUMPS, rate, fits);
    assert_true(is_first(STACKS, STACKS + 1));
    assert_int_equal(suspects, fits[STACKS].is_suspect);
    named += fits[STACKS].is_suspect;
    double truth = 2 * 3600 * 1024;
    assert_true(fabs(fits[STACKS].slope - truth) < 5 * fits[STACKS].slope_error);
    assert_true(fits[STACKS].slope_error < truth / 4);
  }
  assert_in_range(named, RUNS - 3, RUNS);
}

/* The same allocations as 200 kB of churn that lives a second: found later, but found. */
static void test_leak_under_churn_of_its_own_stack_is_found(void **state) {
  (void)state;
  random_state = 4;
  size_t found = 0;
  for (int run = 0; run < 20; run++) {
    make_times(60, 1);
    struct site churn = {.size = 1024, .births = 200.0 * 3600, .life = 1 / 3600.0, .is_old = true},
                leak = {.size = 1024, .births = 7200, .life = FOREVER};
    static double b[400], o[400];
    simulate(&churn, 16384, 60, bytes[0], objects[0]);
    simulate(&leak, 16384, 60, b, o);
    for (size_t k = 0; k < 60; k++) {
      bytes[0][k] += b[k];
      objects[0][k] += o[k];
    }
    found += judge(1, 60, 16384, fits);
  }
  assert_true(found >= 18);
}

/* Blocks that live ten times the run wander like a random walk: the slope's error must say so. With independent errors
 * assumed, four in ten would lie beyond two errors; here one in twenty may (at most 7 in 100, with the luck of 2000 runs).
 */
static void test_error_of_the_slope_holds_for_long_lived_blocks(void **state) {
  (void)state;
  random_state = 5;
  int beyond = 0;
  for (int run = 0; run < 2000; run++) {
    make_times(DUMPS, 1);
    struct site site = {.size = 4096, .births = 30000, .life = 10.0 / 3, .is_old = true};
    simulate(&site, 65536, DUMPS, bytes[0], objects[0]);
    judge(1, DUMPS, 65536, fits);
    beyond += fabs(fits[0].slope) > 2.101 * fits[0].slope_error; /* 5 % of Student's t with 18 degrees of freedom */
  }
  assert_in_range(beyond, 0, 2000 * 0.07);
}

static void fill(size_t count, double (*value)(double hour)) {
  for (size_t k = 0; k < count; k++) {
    hours[k] = (double)k / 60;
    objects[0][k] = value(hours[k]);
    bytes[0][k] = 1000 * objects[0][k];
  }
}

static double value_line(double hour) { return 500 + 60000 * hour; }
static double value_flat(double hour) { return hour * 0 + 12345; }
static double value_plateau(double hour) { return 50000 * (1 - exp(-hour * 15)); }
static double value_falling(double hour) { return 90000 - 60000 * hour; }
static double value_step(double hour) { return hour < 0.15 ? 100 : 90000; }
static double value_jump_then_line(double hour) { return hour < 0.05 ? 100 : 2e6 + 60000 * hour; }

static void test_straight_growth_is_a_suspect_with_the_right_slope(void **state) {
  (void)state;
  fill(DUMPS, value_line);
  assert_int_equal(judge(1, DUMPS, 1, fits), 1);
  assert_true(fabs(fits[0].slope - 6e7) < 1);
  assert_true(fits[0].is_monotone);
  assert_false(fits[0].levels_off);
  assert_true(fabs(fits[0].last_share - 1) < 1e-6);
}

static void test_flat_and_falling_series_are_no_suspects(void **state) {
  (void)state;
  fill(DUMPS, value_flat);
  assert_int_equal(judge(1, DUMPS, 1, fits), 0);
  assert_true(fits[0].slope == 0);
  assert_true(fits[0].slope_error > 0); /* one block more may have come unseen */
  fill(DUMPS, value_falling);
  assert_int_equal(judge(1, DUMPS, 1, fits), 0);
  assert_true(fits[0].slope < 0);
}

static void test_a_plateau_and_a_step_are_no_leaks(void **state) {
  (void)state;
  fill(DUMPS, value_plateau);
  assert_int_equal(judge(1, DUMPS, 1, fits), 0);
  assert_true(fits[0].levels_off);
  fill(DUMPS, value_step);
  assert_int_equal(judge(1, DUMPS, 1, fits), 0);
}

static void test_a_start_up_jump_does_not_hide_the_leak_after_it(void **state) {
  (void)state;
  fill(DUMPS, value_jump_then_line);
  assert_int_equal(judge(1, DUMPS, 1, fits), 1);
  assert_int_equal(fits[0].window_start, DUMPS / 2);
}

static void test_three_dumps_give_a_slope_and_no_suspect(void **state) {
  (void)state;
  fill(3, value_line);
  assert_int_equal(judge(1, 3, 1, fits), 0);
  assert_true(fabs(fits[0].slope - 6e7) < 1);
}

static void test_dumps_at_one_instant_and_hostile_values_stay_finite(void **state) {
  (void)state;
  fill(5, value_line);
  for (size_t k = 0; k < 5; k++) hours[k] = 7;
  assert_int_equal(judge(1, 5, 524288, fits), 0);
  assert_true(fits[0].slope == 0);
  for (size_t k = 0; k < 5; k++)
    hours[k] = (double)k * 1e-12, bytes[0][k] = k % 2 == 0 ? 9.2e18 : -9.2e18, objects[0][k] = 0;
  assert_int_equal(judge(1, 5, 524288, fits), 0);
  assert_true(isfinite(fits[0].slope) && !isnan(fits[0].slope_error) && !isnan(fits[0].p_value));
}

static void test_student_tail_matches_tables(void **state) {
  (void)state;
  assert_true(fabs(hp_trend_student_tail(1.734, 18) - 0.05) < 1e-4);
  assert_true(fabs(hp_trend_student_tail(3.610, 18) - 0.001) < 1e-5);
  assert_true(fabs(hp_trend_student_tail(318.309, 1) - 0.001) < 1e-6);
  assert_true(fabs(hp_trend_student_tail(1.645, 1e6) - 0.05) < 1e-4);
  assert_true(hp_trend_student_tail(0, 5) == 0.5);
  double far = hp_trend_student_tail(12, 18); /* 2.5e-10 */
  assert_true(far > 2.0e-10 && far < 3.1e-10);
}

static void test_holm_steps_down_and_never_falls(void **state) {
  (void)state;
  struct hp_trend_fit f[3] = {{.p_value = 0.0003, .is_tested = true},
                              {.p_value = 0.0004, .is_tested = true},
                              {.p_value = 0.00041, .is_tested = true}};
  struct hp_trend_fit *order[3] = {&f[0], &f[1], &f[2]};
  assert_int_equal(hp_trend_correct(order, 3), 3);
  assert_true(fabs(f[0].p_adjusted - 0.0009) < 1e-12 && f[0].is_suspect);
  assert_true(fabs(f[1].p_adjusted - 0.0009) < 1e-12 && f[1].is_suspect); /* 0.0008, held up */
  assert_true(f[2].p_adjusted >= f[1].p_adjusted);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_student_tail_matches_tables),
      cmocka_unit_test(test_holm_steps_down_and_never_falls),
      cmocka_unit_test(test_straight_growth_is_a_suspect_with_the_right_slope),
      cmocka_unit_test(test_flat_and_falling_series_are_no_suspects),
      cmocka_unit_test(test_a_plateau_and_a_step_are_no_leaks),
      cmocka_unit_test(test_a_start_up_jump_does_not_hide_the_leak_after_it),
      cmocka_unit_test(test_three_dumps_give_a_slope_and_no_suspect),
      cmocka_unit_test(test_dumps_at_one_instant_and_hostile_values_stay_finite),
      cmocka_unit_test(test_error_of_the_slope_holds_for_long_lived_blocks),
      cmocka_unit_test(test_planted_leak_is_first_within_20_dumps),
      cmocka_unit_test(test_leak_under_churn_of_its_own_stack_is_found),
      cmocka_unit_test(test_fifty_runs_without_a_leak_name_nothing),
      cmocka_unit_test(test_long_series_without_a_leak_name_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
