/* SPDX-License-Identifier: MIT
 * test_sampler.c - B1, B2, B3, B9: weights against known values, gaps, the decision. */
#include <math.h>

#include "hot.h"
#include "sampler.h"
#include "unit_test.h"

struct hp_hot hp_hot = {.rate_epoch = 1};

static void b3_weights_are_one_over_the_probability(void **state) {
  (void)state;
  static const struct {
    uint64_t size;
    double objects, bytes;
  } golden[] = {{16, 32768.5, 524296},     {1024, 512.5, 524800},        {65536, 8.5104, 557738},
                {524288, 1.58198, 829411}, {2097152, 1.018657, 2136279}, {32 << 20, 1, 33554432}};
  for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
    double w = hp_sampler_weight(golden[i].size, 524288);
    assert_true(fabs(w - golden[i].objects) < golden[i].objects * 1e-5);
    assert_true(fabs(w * (double)golden[i].size - golden[i].bytes) < 1);
    assert_true(fabs(w * -expm1(-(double)golden[i].size / 524288) - 1) < 1e-14);
  }
  assert_true(hp_sampler_weight(0, 1024) == hp_sampler_weight(1, 1024)); /* B9 */
  assert_true(hp_sampler_weight(12345, 1) == 1 && hp_sampler_weight(UINT64_MAX, 1 << 20) == 1);
}

static void b3_a_site_of_many_small_and_one_large_block_is_not_averaged(void **state) {
  (void)state;
  double objects = 31 * hp_sampler_weight(16, 524288) + hp_sampler_weight(4 << 20, 524288);
  assert_true(fabs(objects - 1.016e6) < 0.001e6); /* weights from the mean size would say 145 */
}

static void quantised_weights_are_unbiased(void **state) {
  (void)state;
  static const double weights[] = {1.0001, 1.58198, 8.51, 513.7777, 16383.99};
  struct hp_rng rng = {3};
  for (size_t i = 0; i < 5; i++) {
    double sum = 0;
    for (int k = 0; k < 200000; k++) {
      float q = hp_sampler_quantise(weights[i], &rng);
      assert_true(fabs(q - weights[i]) <= 1 / 1024.0);
      assert_true(fmod((double)q * 1024, 1) == 0);
      sum += (double)q;
    }
    assert_true(fabs(sum / 200000 - weights[i]) < 5 / 2048.0 / sqrt(200000));
  }
  assert_true(hp_sampler_quantise(1, &rng) == 1);
}

static void b1_gaps_are_exponential(void **state) {
  (void)state;
  struct hp_rng rng = {4};
  for (uint64_t rate = 1024; rate <= 1 << 20; rate <<= 5) {
    enum { N = 200000 };
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
      double gap = (double)hp_sampler_draw_gap(&rng, rate) + 0.5;
      sum += gap;
      squares += gap * gap;
    }
    double r = (double)rate;
    assert_true(fabs(sum / N - r) < 5 * r / sqrt(N));
    assert_true(fabs(squares / N - 2 * r * r) < 5 * r * r * sqrt(20.0 / N));
  }
  assert_int_equal(hp_sampler_draw_gap(&rng, 1), 0);
  assert_true(hp_sampler_draw_gap(&rng, 0) == UINT64_MAX);
}

static bool is_sample(size_t size) { return !hp_sampler_passes(size) && hp_sampler_decide_slow(size) != 0; }

static void b1_the_share_of_samples_is_1_minus_e_to_the_minus_s_over_r(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 100, 4096, 20000};
  hp_sampler_test_seed(12);
  hp_sampler_set_rate(4096);
  for (size_t i = 0; i < 5; i++) {
    double n = sizes[i] < 100 ? 2e6 : 2e5, p = -expm1(-(double)(sizes[i] + (sizes[i] == 0)) / 4096);
    long samples = 0;
    for (long k = 0; k < (long)n; k++) samples += is_sample(sizes[i]);
    assert_true(fabs((double)samples - n * p) < 5 * sqrt(n * p * (1 - p)) + 1);
  }
}

static void b2_a_change_of_rate_samples_nobody(void **state) {
  (void)state;
  hp_sampler_set_rate(1024);
  for (int i = 0; i < 100000; i++) {
    is_sample(100);
    hp_sampler_set_rate((uint64_t)1 << 40);
    assert_false(is_sample(1)); /* one in 2^40 */
    hp_sampler_set_rate(1024);
  }
  hp_sampler_set_rate(0);
  for (int i = 0; i < 1000; i++) assert_false(is_sample(SIZE_MAX / 2));
  hp_sampler_set_rate(1);
  for (int i = 0; i < 1000; i++) assert_true(is_sample(0));
}

static void a_gap_that_wrapped_round_is_drawn_anew(void **state) {
  (void)state;
  hp_sampler_set_rate(512 << 10);
  hp_sampler_forget_gap();
  hp_sampler_decide_slow(16);
  uint64_t drawn = hp_thread.bytes_left;
  hp_sampler_mend_gap();
  assert_int_equal(hp_thread.bytes_left, drawn);
  assert_true(hp_sampler_is_current());
  hp_thread.bytes_left -= drawn + 100;     /* what 100 bytes too many leave */
  assert_true(hp_sampler_passes(1 << 30)); /* so it would go on for ever */
  hp_sampler_mend_gap();
  assert_false(hp_sampler_passes(16));
  hp_sampler_decide_slow(16);
  assert_true(hp_thread.bytes_left < (uint64_t)1 << 46);
  hp_sampler_set_rate(0);
  hp_sampler_forget_gap();
  hp_sampler_decide_slow(16);
  hp_sampler_mend_gap(); /* without sampling there is no end to a gap */
  assert_true(hp_sampler_passes(16));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(b3_weights_are_one_over_the_probability),
                                     cmocka_unit_test(b3_a_site_of_many_small_and_one_large_block_is_not_averaged),
                                     cmocka_unit_test(quantised_weights_are_unbiased),
                                     cmocka_unit_test(b1_gaps_are_exponential),
                                     cmocka_unit_test(b1_the_share_of_samples_is_1_minus_e_to_the_minus_s_over_r),
                                     cmocka_unit_test(b2_a_change_of_rate_samples_nobody),
                                     cmocka_unit_test(a_gap_that_wrapped_round_is_drawn_anew)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
