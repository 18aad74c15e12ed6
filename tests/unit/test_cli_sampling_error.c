/* SPDX-License-Identifier: MIT
 * test_cli_sampling_error.c - how often the truth lies within 1.96 standard errors of what a sampler reports.
 *
 * Simulation with fixed seeds: blocks of known sizes are sampled as the library does it, the row is rounded, its error asked for.
 * With 2000 rounds a coverage of 93 % is measured to +-0.6 %; the seeds are fixed, so a pass stays a pass.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* after the above */
#include <cmocka.h>

#include "sampling_error.h"

enum { ROUNDS = 2000 };

static uint64_t state;

static double uniform(void) { /* splitmix64, in (0, 1) */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }

typedef double size_fn(int block);

static double fixed_16(int block) {
  (void)block;
  return 16;
}
static double fixed_1k(int block) {
  (void)block;
  return 1024;
}
static double fixed_100k(int block) {
  (void)block;
  return 100000;
}
static double fixed_600k(int block) {
  (void)block;
  return 600000;
}
static double fixed_4m(int block) {
  (void)block;
  return 4 << 20;
}
static double uniform_sizes(int block) {
  (void)block;
  return 16 + floor(uniform() * 2000);
}
static double lognormal(int block) {
  (void)block;
  return fmax(16, floor(exp(6 + 1.2 * normal())));
}
static double loguniform(int block) {
  (void)block;
  return floor(16 * pow(4096, uniform()));
}
static double few_large(int block) { return block % 200 == 0 ? 3 << 20 : 64; }
static double half_and_half(int block) { return block % 2 == 0 ? 32 : 65536; }

struct coverage {
  double bytes, objects; /* share of the rounds with a row */
  double bytes_width;    /* mean error over the true standard deviation */
};

static struct coverage simulate(size_fn *size_of, int blocks, double period, uint64_t seed) {
  struct coverage coverage = {0, 0, 0};
  double rows = 0, width = 0, squares = 0;
  state = seed;
  double *sizes = malloc(sizeof(double) * (size_t)blocks);
  double true_bytes = 0;
  for (int i = 0; i < blocks; i++) true_bytes += sizes[i] = size_of(i);
  for (int round_number = 0; round_number < ROUNDS; round_number++) {
    double objects = 0, bytes = 0;
    for (int i = 0; i < blocks; i++) {
      double p = -expm1(-sizes[i] / period);
      if (uniform() >= p) continue;
      objects += 1 / p;
      bytes += sizes[i] / p;
    }
    squares += (bytes - true_bytes) * (bytes - true_bytes);
    if (objects == 0) continue; /* no row */
    struct hp_sampling_variance of_bytes = {0, 0}, of_objects = {0, 0};
    hp_sampling_variance_add(&of_bytes, &of_objects, (int64_t)period, llround(objects), llround(bytes));
    double bytes_error = hp_sampling_error(&of_bytes), objects_error = hp_sampling_error(&of_objects);
    rows++;
    width += bytes_error;
    coverage.bytes += fabs(bytes - true_bytes) <= 1.96 * bytes_error + 1;
    coverage.objects += fabs(objects - blocks) <= 1.96 * objects_error + 1;
  }
  free(sizes);
  coverage.bytes /= rows;
  coverage.objects /= rows;
  coverage.bytes_width = width / rows / sqrt(squares / ROUNDS);
  return coverage;
}

static const struct {
  const char *name;
  size_fn *size_of;
  int blocks;
  double period;
} scenarios[] = {
    {"16 B, 10 samples", fixed_16, 2560, 4096},           {"1 KiB, 5 samples", fixed_1k, 2560, 524288},
    {"1 KiB, 50 samples", fixed_1k, 3200, 65536},         {"100 kB, 20 samples", fixed_100k, 115, 524288},
    {"600 kB, 30 blocks", fixed_600k, 30, 524288},        {"uniform, 10 samples", uniform_sizes, 650, 65536},
    {"lognormal, 10 samples", lognormal, 1000, 65536},    {"lognormal, 60 samples", lognormal, 1500, 16384},
    {"log-uniform, 100 samples", loguniform, 800, 65536},
};

static void test_intervals_cover_the_truth_in_93_of_100_rows(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
    struct coverage c = simulate(scenarios[i].size_of, scenarios[i].blocks, scenarios[i].period, 1000 + i);
    print_message("%-28s bytes %.3f objects %.3f width %.2f\n", scenarios[i].name, c.bytes, c.objects, c.bytes_width);
    assert_true(c.bytes >= 0.93);
    assert_true(c.objects >= 0.93);
  }
}

/* Objects cannot be covered here: the large blocks hide the small ones whenever none of those was sampled, and nothing in the row
 * tells of it. sampling_error.c says so; bytes hold all the same. */
static void test_bytes_are_covered_when_few_large_blocks_hide_many_small(void **unused) {
  (void)unused;
  assert_true(simulate(few_large, 2000, 524288, 42).bytes >= 0.93);
  assert_true(simulate(half_and_half, 400, 524288, 43).bytes >= 0.93);
  struct coverage c = simulate(loguniform, 1000, 524288, 44);
  assert_true(c.bytes >= 0.93);
  assert_true(c.objects >= 0.75);
}

static void test_an_interval_is_not_needlessly_wide_for_one_size(void **unused) {
  (void)unused;
  assert_true(simulate(fixed_1k, 3200, 65536, 7).bytes_width < 1.15);
  assert_true(simulate(fixed_100k, 115, 524288, 8).bytes_width < 1.25);
}

static double error_of(int64_t period, int64_t objects, int64_t bytes, bool of_objects) {
  struct hp_sampling_variance b = {0, 0}, o = {0, 0};
  hp_sampling_variance_add(&b, &o, period, objects, bytes);
  return hp_sampling_error(of_objects ? &o : &b);
}

static void test_every_allocation_recorded_means_no_error(void **unused) {
  (void)unused;
  assert_true(error_of(1, 1000, 123456, false) == 0);
  assert_true(error_of(0, 1000, 123456, true) == 0);
}

static void test_blocks_far_above_the_period_have_no_error(void **unused) {
  (void)unused;
  assert_true(error_of(524288, 3, 3 * (int64_t)33554432, false) < 1);
  assert_true(error_of(524288, 3, 3 * (int64_t)33554432, true) < 1e-6);
  assert_true(simulate(fixed_4m, 5, 524288, 9).bytes >= 0.93);
}

/* k samples of s bytes: n = k w, b = k w s; the estimate of the variance is n (w - 1) s^2, and two samples more. */
static void test_one_size_is_recognised_and_gets_the_exact_formula(void **unused) {
  (void)unused;
  const double period = 524288, sizes[] = {1, 16, 17, 48, 1024, 65536, 300001, 524288, 2097152};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (int k = 1; k < 2000; k = k * 3 + 1) {
      double w = -1 / expm1(-sizes[i] / period), n = k * w;
      double expected = sqrt((n * (w - 1) + 2 * w * (w - 1)) * sizes[i] * sizes[i]);
      double got = error_of((int64_t)period, llround(n), llround(n * sizes[i]), false);
      if (fabs(got - expected) > 0.05 * expected + 1)
        print_message("size %g k %d: %g, not %g\n", sizes[i], k, got, expected);
      /* small k leave several sizes that fit; they give nearly the same error */
      assert_true(fabs(got - expected) <= 0.05 * expected + 1);
    }
  }
}

static void test_hostile_figures_give_a_number(void **unused) {
  (void)unused;
  const int64_t values[] = {0, 1, -1, 2, 1000, INT64_MAX, INT64_MIN, INT64_MAX / 2};
  for (size_t i = 0; i < 8; i++)
    for (size_t j = 0; j < 8; j++)
      for (size_t k = 0; k < 8; k++) {
        assert_true(error_of(values[i], values[j], values[k], false) >= 0);
        assert_true(error_of(values[i], values[j], values[k], true) >= 0);
      }
}

static void test_adding_stacks_adds_variances_and_the_extra_samples_once(void **unused) {
  (void)unused;
  struct hp_sampling_variance sum = {0, 0}, one = {0, 0};
  for (int i = 0; i < 100; i++) hp_sampling_variance_add(&sum, NULL, 524288, 5130, 5248000);
  hp_sampling_variance_add(&one, NULL, 524288, 5130, 5248000);
  assert_true(fabs(sum.sum - 100 * one.sum) < 1e-6 * sum.sum);
  assert_true(sum.one_sample_max == one.one_sample_max);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_intervals_cover_the_truth_in_93_of_100_rows),
      cmocka_unit_test(test_bytes_are_covered_when_few_large_blocks_hide_many_small),
      cmocka_unit_test(test_an_interval_is_not_needlessly_wide_for_one_size),
      cmocka_unit_test(test_every_allocation_recorded_means_no_error),
      cmocka_unit_test(test_blocks_far_above_the_period_have_no_error),
      cmocka_unit_test(test_one_size_is_recognised_and_gets_the_exact_formula),
      cmocka_unit_test(test_hostile_figures_give_a_number),
      cmocka_unit_test(test_adding_stacks_adds_variances_and_the_extra_samples_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
