/* SPDX-License-Identifier: MIT
 * mathfn.c - log, exp and expm1 by range reduction and a short series.
 * exp: x = k ln2 + r, |r| <= ln2/2; e^r by its Taylor series to r^13 (remainder below 2^-58), times 2^k.
 * log: x = m 2^k, m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m-1)/(m+1), series to s^21. */
#include "mathfn.h"

#include <stdint.h>
#include <string.h>

static const double LN2_HIGH = 0x1.62e42feep-1; /* ln 2 in two parts: k * LN2_HIGH is exact for |k| < 2^20 */
static const double LN2_LOW = 0x1.a39ef35793c76p-33;
static const double INV_LN2 = 0x1.71547652b82fep+0;

static double scale2(double x, int k) {
  uint64_t bits = (uint64_t)(1023 + k) << 52;
  double factor;
  memcpy(&factor, &bits, sizeof factor);
  return x * factor;
}

/* e^r - 1 for |r| <= 0.35, by Horner. */
static double expm1_reduced(double r) {
  static const double c[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                             1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                             1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
  double sum = 0;
  for (unsigned i = 0; i < sizeof c / sizeof c[0]; i++) sum = sum * r + c[i];
  return r + r * r * sum;
}

static int reduce(double x, double *out_r) {
  double scaled = x * INV_LN2;
  int k = (int)(scaled + (scaled < 0 ? -0.5 : 0.5));
  *out_r = (x - k * LN2_HIGH) - k * LN2_LOW;
  return k;
}

double hp_math_exp(double x) {
  double r;
  int k = reduce(x, &r);
  return scale2(1.0 + expm1_reduced(r), k);
}

double hp_math_expm1(double x) {
  if (x > -0.35 && x < 0.35) return expm1_reduced(x);
  return hp_math_exp(x) - 1.0;
}

double hp_math_log(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int k = (int)(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
  double m;
  memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    k++;
  }
  double f = m - 1.0;
  double s = f / (2.0 + f);
  double z = s * s;
  double sum = 0;
  for (int i = 21; i >= 3; i -= 2) sum = (sum + 1.0 / i) * z;
  return k * LN2_HIGH + (2.0 * s + (2.0 * s * sum + k * LN2_LOW));
}
