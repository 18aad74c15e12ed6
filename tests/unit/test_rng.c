/* SPDX-License-Identifier: MIT
 * test_rng.c - uniform numbers: never 0, fair in mean, in each bit and from one to the next. */
#include <math.h>

#include "rng.h"
#include "unit_test.h"

static void unit_is_uniform_in_0_exclusive_1_inclusive(void **state) {
  (void)state;
  enum { N = 1000000, CELLS = 100 };
  for (uint64_t seed = 0; seed < 3; seed++) {
    struct hp_rng rng = {seed};
    double sum = 0, products = 0, last = 0.5, chi = 0;
    static int cells[CELLS];
    for (int c = 0; c < CELLS; c++) cells[c] = 0;
    for (int i = 0; i < N; i++) {
      double u = hp_rng_unit(&rng);
      assert_true(u > 0 && u <= 1);
      sum += u;
      products += (u - 0.5) * (last - 0.5);
      last = u;
      cells[(int)(u * CELLS) == CELLS ? CELLS - 1 : (int)(u * CELLS)]++;
    }
    for (int c = 0; c < CELLS; c++) chi += pow(cells[c] - N / CELLS, 2) / (N / CELLS);
    assert_true(fabs(sum / N - 0.5) < 5 / sqrt(12.0 * N));
    assert_true(fabs(products / N) < 5 / (12 * sqrt(N)));
    assert_true(chi < 99 + 5 * sqrt(2 * 99));
  }
}

static void each_bit_is_fair(void **state) {
  (void)state;
  enum { N = 100000 };
  struct hp_rng rng = {99};
  int ones[64] = {0};
  for (int i = 0; i < N; i++) {
    uint64_t r = hp_rng_next(&rng);
    for (int b = 0; b < 64; b++) ones[b] += (int)(r >> b & 1);
  }
  for (int b = 0; b < 64; b++) assert_true(fabs(ones[b] - N / 2.0) < 5 * sqrt(N) / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(unit_is_uniform_in_0_exclusive_1_inclusive),
                                     cmocka_unit_test(each_bit_is_fair)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
