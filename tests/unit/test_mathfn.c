/* SPDX-License-Identifier: MIT
 * test_mathfn.c - log, exp and expm1 against libm, over the range the sampler uses. */
#include <float.h>
#include <math.h>

#include "mathfn.h"
#include "rng.h"
#include "unit_test.h"

static void close_to(double got, double want, double x) {
  double error = want == 0 ? fabs(got) : fabs(got - want) / fabs(want);
  if (error > 4.5e-16) fail_msg("at %.17g: %.17g, libm %.17g", x, got, want);
}

static void logarithm_is_libms(void **state) {
  (void)state;
  struct hp_rng rng = {1};
  close_to(hp_math_log(1), 0, 1);
  close_to(hp_math_log(0x1p-53), log(0x1p-53), 0x1p-53);
  close_to(hp_math_log(DBL_MIN), log(DBL_MIN), DBL_MIN);
  for (int i = 0; i < 1000000; i++) {
    double x = hp_rng_unit(&rng);
    if (i % 3 == 0) x = ldexp(x, i % 1000 - 500);
    if (fabs(x - 1) < 1e-3) continue; /* near 1 the result is near 0: absolutely exact, that is enough for a gap */
    close_to(hp_math_log(x), log(x), x);
  }
  for (double x = 0.999; x < 1.001; x += 1e-6) assert_true(fabs(hp_math_log(x) - log(x)) < 1e-16);
}

static void exponentials_are_libms(void **state) {
  (void)state;
  struct hp_rng rng = {2};
  assert_true(hp_math_expm1(0) == 0);
  for (int i = 0; i < 1000000; i++) {
    double x = (hp_rng_unit(&rng) - 0.5) * (i % 2 == 0 ? 1400 : 80);
    close_to(hp_math_exp(x), exp(x), x);
    double y = -hp_rng_unit(&rng) * ldexp(1, -(i % 45));
    close_to(hp_math_expm1(y), expm1(y), y);
    if (x < 0 && x > -50) close_to(hp_math_expm1(x), expm1(x), x);
  }
}

static void square_root_is_exact(void **state) {
  (void)state;
  for (double x = 0; x < 1e6; x += 77.7) assert_true(hp_math_sqrt(x) == sqrt(x));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(logarithm_is_libms), cmocka_unit_test(exponentials_are_libms),
                                     cmocka_unit_test(square_root_is_exact)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
