/* SPDX-License-Identifier: MIT
 * sampling_error.c - see sampling_error.h. What can be said about the error of a stack from R, objects and bytes alone.
 *
 * A block of s bytes is sampled with probability p = 1 - exp(-s/R) and then stands for w = 1/p blocks. For N blocks of sizes s_i
 *     Var(bytes)   = sum s_i^2 (1-p_i)/p_i = sum g(s_i),   g(s) = s^2 / (exp(s/R) - 1)
 *     Var(objects) = sum (1-p_i)/p_i       = sum f(s_i),   f(s) = 1 / (exp(s/R) - 1)
 * The file does not say the sizes, only n = sum w_i and b = sum w_i s_i over the blocks sampled (each rounded once).
 *
 * One size. Most stacks allocate one size. Then b = k w s and n = k w for whole numbers k (blocks sampled) and s: two figures from
 * two unknowns that must both be whole, which a mixture meets by chance about once in a million. single_size() looks for such
 * s and k; with them the unbiased estimate is exact: n (1-p)/p blocks squared, times s^2 for bytes.
 *
 * Mixed sizes, bytes. g rises from 0 like R s, is concave up to its maximum 0.6476 R^2 at s = 1.5936 R, and falls. Its concave
 * envelope is g up to there and constant after, so by Jensen's inequality, with the mean size s = b/n,
 *     Var(bytes) <= n g(min(s, 1.5936 R))
 * whatever the mixture: an upper bound, tight for small blocks (R b) and never more than 0.8 R sqrt(n).
 *
 * Mixed sizes, objects. f is convex and unbounded towards 0: the mean says nothing about small blocks, and they decide. With no
 * block below 16 bytes (the smallest step of the common allocators) Var <= n f(min(16, s)); and the unbiased estimate
 * sum (w_i^2 - w_i) is never above (sum w_i)^2 = n^2. The smaller of the two is taken: wide, but it holds as long as some of the small
 * blocks were sampled. Where large blocks hide small ones of which none was, the row does not know of them: there the coverage of
 * objects (never of bytes) can fall to about 80 of 100. HEAPPROF_LABELS=size, a row for each size, mends that.
 *
 * Two samples more. A row of k samples estimates its own variance from the same k: too small when k came out too small. At k
 * around 5 an interval of 1.96 standard errors then covers only 87 of 100. Adding the variance of two samples more, once a row,
 * gives 93 or more at every k (Wilson's interval does the same by moving its centre), costs 2 % of width at 50 samples, and
 * nothing for blocks far above R.
 */
#include "sampling_error.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { CANDIDATES_MAX = 64, SIZE_BYTES_SMALLEST = 16 };

static const double g_peak = 1.5936242600400401;

static double weight(double size, double period) { return 1 / -expm1(-fmax(size, 1) / period); }

/* f(s): the variance of the count of one block. */
static double count_variance(double size, double period) { return 1 / expm1(fmax(size, 1) / period); }

/* Do k samples of blocks of `size` bytes and weight w give these figures, up to the rounding of a row? (Go truncates: hence a whole unit.) */
static bool fits(double k, double size, double w, double objects, double bytes) {
  return k >= 1 && fabs(k * w - objects) <= 1 && fabs(k * w * size - bytes) <= 1 + bytes * 1e-12;
}

/* The size s whose samples stand for `share` bytes each: w(s) s = share. Newton from `guess`; the slope is in [1/2, 1]. */
static double size_of_share(double share, double guess, double period) {
  double size = guess;
  for (int i = 0; i < 8; i++) {
    double w = weight(size, period);
    double slope = w - size / period * w * (w - 1);
    double step = (w * size - share) / fmax(slope, 0.5);
    size = fmax(size - step, 0);
    if (fabs(step) < 0.01) break;
  }
  return size;
}

/* The one size of all blocks of a stack, or 0 if the figures speak of a mixture (or do not say). */
static double single_size(double objects, double bytes, double period) {
  double lowest = fmax(floor((bytes - 1) / (objects + 1)), 1);
  double highest = ceil((bytes + 1) / fmax(objects - 1, 1));
  /* A larger block weighs less: is there a whole number of samples at all? For most mixtures there is none. */
  double k_least = fmax(ceil((objects - 1) / weight(lowest, period)), 1);
  if (k_least > floor((objects + 1) / weight(highest, period))) return 0;
  if (highest - lowest <= CANDIDATES_MAX) {
    for (double size = lowest; size <= highest; size++) {
      double w = weight(size, period);
      if (fits(round(bytes / (w * size)), size, w, objects, bytes)) return size;
    }
    return 0;
  }
  double k_first = fmax(floor((objects - 1) / weight(lowest, period)), 1);
  double k_last = ceil((objects + 1) / weight(highest, period));
  for (double k = k_first; k <= k_last && k - k_first < CANDIDATES_MAX; k++) {
    double size = round(size_of_share(bytes / k, bytes / objects, period));
    if (fits(k, size, weight(size, period), objects, bytes)) return size;
  }
  return 0;
}

static void add(struct hp_sampling_variance *to, double sum, double one_sample) {
  if (to == NULL) return;
  to->sum += sum;
  to->one_sample_max = fmax(to->one_sample_max, one_sample);
}

void hp_sampling_variance_add(struct hp_sampling_variance *bytes, struct hp_sampling_variance *objects, int64_t period_bytes,
                              int64_t objects_estimate, int64_t bytes_estimate) {
  double period = (double)period_bytes, n = fabs((double)objects_estimate), b = fabs((double)bytes_estimate);
  if (period_bytes <= 1 || (n == 0 && b == 0)) return;
  if (n == 0) { /* a reader's or writer's fault; R b holds for any sizes */
    add(bytes, b * period, period * period);
    return;
  }
  double size = single_size(n, b, period);
  if (size > 0) {
    double w = weight(size, period), one = w * (w - 1); /* w^2 (1-p) */
    add(bytes, n * (w - 1) * size * size, one * size * size);
    add(objects, n * (w - 1), one);
    return;
  }
  double mean = b / n, concave = fmin(fmax(mean, 1), g_peak * period);
  double w = weight(mean, period);
  add(bytes, b == 0 ? 0 : n * concave * concave * count_variance(concave, period), b == 0 ? 0 : period * period);
  add(objects, fmin(n * count_variance(fmin(mean, SIZE_BYTES_SMALLEST), period), n * n), w * (w - 1));
}

double hp_sampling_error(const struct hp_sampling_variance *variance) {
  return sqrt(variance->sum + 2 * variance->one_sample_max);
}
