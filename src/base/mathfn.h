/* SPDX-License-Identifier: MIT
 * mathfn.h - the three functions of <math.h> the sampler needs, without libm: one shared object less to load in every
 * process (40 us of an exec), and no errno or rounding-mode surprises inside malloc. Pure; async-signal-safe.
 * Relative error below 4e-16 (tests/unit/test_mathfn.c compares with libm). */
#ifndef HP_MATHFN_H
#define HP_MATHFN_H

/* Natural logarithm of a finite x > 0. */
double hp_math_log(double x);
/* e^x for -700 <= x <= 700. */
double hp_math_exp(double x);
/* e^x - 1 without cancellation near 0, for -700 <= x <= 700. */
double hp_math_expm1(double x);
/* Square root of a finite x >= 0. */
static inline double hp_math_sqrt(double x) { return __builtin_sqrt(x); }

#endif
