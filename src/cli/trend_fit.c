/* SPDX-License-Identifier: MIT
 * trend_fit.c - see trend_fit.h.
 *
 * What is known  Y_1 .. Y_m, the in-use estimates of one stack at times t_1 .. t_m, and how large their sampling error is.
 *
 * Slope  least squares, b = sum c_i Y_i / sum c_i^2 with c_i = t_i - mean(t). With the increments d_k = Y_(k+1) - Y_k it is
 *   b = sum g_k d_k,   g_k = sum_(i>k) c_i / sum c_i^2   (all g_k > 0, largest in the middle).
 *
 * Why not the error of ordinary least squares  It takes the residuals for independent. They are not: a sampled block that
 * lives over ten dumps is in all ten, so its luck repeats; a stack without growth whose blocks live long wanders like a
 * random walk, and a line fits a random walk very well. With 20 points nothing in the series itself can rule that out
 * at 99.9 %, so the worst is assumed: under the null hypothesis the increments are the independent thing, with mean 0, and
 * variance in proportion to the time they span. For blocks that live short this overstates the error (increments of an
 * independent series cancel): the test then misses small growth under large churn in the same stack until it has lasted
 * longer. It does not invent growth.
 *
 * Variance of b, the largest of
 *   residuals  sum g_k^2 dt_k v, v = sum (d_k - mu dt_k)^2 / dt_k / (m-2), mu = (Y_m - Y_1)/(t_m - t_1): what the series
 *              shows, real fluctuations of the load included; times 1 + 2 sum_l (1 - l/(L+1)) r_l where the increments'
 *              own autocorrelations r_l (Bartlett weights, L = 2) make that larger than 1: swings longer than a dump;
 *   sampling   sum g_k^2 q_k (|n_k| + 1/(m-1)): births and deaths of sampled blocks are Poisson, so a net change that stands
 *              for n_k samples has variance of at least |n_k|, each worth q_k = (s/p)^2, p = 1-exp(-s/rate); one sample more
 *              over the whole time keeps it above zero for a stack that was never seen to change.
 *   Pure growth of K samples in all then gives b/se of at most about sqrt(K).
 * p-value  b/se against Student's t with m-2 degrees of freedom, one-sided.
 *
 * Windows  A start-up jump in the first dumps makes v large and would hide a leak for ever. So the test is made on all dumps
 * and on the last half (at least 8), and the smaller p counts twice (Bonferroni).
 *
 * Plateau  Warm-up looks like a leak until it ends. Growth must go on: in the last third of the window the stack must have
 * grown at half its mean rate or more, and by two standard errors of sampling; otherwise it "levels off" and is no suspect.
 *
 * Many stacks  Holm over all stacks tested holds the chance of any false suspect in a run at 0.1 %, whatever their
 * dependence. Tested are those present in at least three dumps that changed by more than eight samples in all: a stack that
 * rose by n samples or fewer cannot reach p < 2^-n, so leaving out n <= 8 removes only hypotheses that could not have been
 * rejected.
 */
#include "trend_fit.h"

#include <math.h>
#include <string.h>

#define MONOTONE_SAMPLES 1.5 /* a fall by less is within what one sample does */
#define WINDOW_DUMPS_MIN 8   /* of the second window */
#define SAMPLES_MIN 8.0      /* see "Many stacks" */
#define LAGS 2

/* Continued fraction of the incomplete beta function (Lentz); converges in O(sqrt(a + b)) steps for x < (a+1)/(a+b+2). */
static double beta_fraction(double a, double b, double x) {
  const double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (fabs(d) < tiny) d = tiny;
  d = 1 / d;
  double h = d;
  for (int i = 1; i <= 500; i++) {
    double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
    d = 1 + even * d;
    c = 1 + even / c;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    if (fabs(c) < tiny) c = tiny;
    h *= d * c;
    double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
    d = 1 + odd * d;
    c = 1 + odd / c;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    if (fabs(c) < tiny) c = tiny;
    double step = d * c;
    h *= step;
    if (fabs(step - 1) < 1e-12) break;
  }
  return h;
}

static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

/* I_x(a, b) */
static double beta_incomplete(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double hp_trend_student_tail(double t, double freedom) {
  if (!(t > 0) || !(freedom > 0)) return 0.5;
  return 0.5 * beta_incomplete(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/* The worth of one sample of blocks of `size` bytes, and how many samples a byte stands for. */
static void sample_worth(double size, int64_t period_bytes, double *worth, double *samples_per_byte) {
  double p = 1;
  if (size < 1) size = 1;
  if (period_bytes > 1) p = -expm1(-size / (double)period_bytes);
  *worth = size / p;
  *samples_per_byte = p / size;
}

/* Mean size of the blocks that came or went between two dumps; where bytes and objects went different ways, of all blocks.
 */
static double changed_size(const struct hp_trend_points *points, size_t k, double mean_size) {
  double bytes = points->bytes[k + 1] - points->bytes[k], objects = points->objects[k + 1] - points->objects[k];
  return bytes * objects > 0 && fabs(objects) > 0.5 ? bytes / objects : mean_size;
}

static double mean_size_of(const struct hp_trend_points *points) {
  double bytes = 0, objects = 0;
  for (size_t i = 0; i < points->count; i++) {
    bytes += points->bytes[i];
    objects += points->objects[i];
  }
  return objects > 0 ? bytes / objects : 1;
}

/* Bartlett-weighted autocorrelation of the increments about their mean; never below 1. */
static double inflation(const struct hp_trend_points *points, double mean_rate, double sum_squares) {
  double factor = 1;
  if (!(sum_squares > 0)) return 1;
  for (size_t lag = 1; lag <= LAGS; lag++) {
    double products = 0;
    for (size_t k = lag; k + 1 < points->count; k++) {
      double dt_a = points->hours[k + 1] - points->hours[k], dt_b = points->hours[k - lag + 1] - points->hours[k - lag];
      if (!(dt_a > 0) || !(dt_b > 0)) continue;
      double a = (points->bytes[k + 1] - points->bytes[k] - mean_rate * dt_a) / sqrt(dt_a);
      double b = (points->bytes[k - lag + 1] - points->bytes[k - lag] - mean_rate * dt_b) / sqrt(dt_b);
      products += a * b;
    }
    factor += 2 * (1 - (double)lag / (LAGS + 1)) * products / sum_squares;
  }
  return factor > 1 ? factor : 1;
}

struct line {
  double slope;
  double error;
  double samples; /* that all changes together stand for */
};

/* Slope and error of the points, as derived above. */
static struct line fit_line(const struct hp_trend_points *points) {
  struct line out = {0, 0, 0};
  size_t m = points->count;
  double mean = 0, squares = 0;
  for (size_t i = 0; i < m; i++) mean += points->hours[i] / (double)m;
  for (size_t i = 0; i < m; i++) squares += (points->hours[i] - mean) * (points->hours[i] - mean);
  double span = points->hours[m - 1] - points->hours[0];
  if (!(squares > 0) || !(span > 0)) return out;
  double mean_rate = (points->bytes[m - 1] - points->bytes[0]) / span, mean_size = mean_size_of(points);
  double ahead = 0; /* sum of c_i over i > k, from the end */
  double weights_time = 0, sampling = 0, residuals = 0;
  for (size_t k = m - 1; k-- > 0;) {
    ahead += points->hours[k + 1] - mean;
    double g = ahead / squares, dt = points->hours[k + 1] - points->hours[k], d = points->bytes[k + 1] - points->bytes[k];
    double worth, samples_per_byte;
    sample_worth(changed_size(points, k, mean_size), points->period_bytes, &worth, &samples_per_byte);
    double n = fabs(d) * samples_per_byte;
    out.slope += g * d;
    out.samples += n;
    sampling += g * g * worth * worth * (n + 1 / (double)(m - 1));
    weights_time += g * g * dt;
    if (dt > 0) residuals += (d - mean_rate * dt) * (d - mean_rate * dt) / dt;
  }
  double v = residuals / (double)(m - 2) * inflation(points, mean_rate, residuals);
  double by_residuals = weights_time * v;
  out.error = sqrt(by_residuals > sampling ? by_residuals : sampling);
  return out;
}

static struct hp_trend_points points_from(const struct hp_trend_points *points, size_t start) {
  struct hp_trend_points part = *points;
  part.hours += start;
  part.bytes += start;
  part.objects += start;
  part.count -= start;
  return part;
}

/* The dump at which the last third of the time begins, and what even growth would bring from there on. */
static size_t last_third(const struct hp_trend_points *points, double *even_share) {
  size_t m = points->count;
  double from = points->hours[0], span = points->hours[m - 1] - from;
  size_t k = m - 2;
  while (k > 0 && points->hours[k - 1] - from >= span * (2.0 / 3) - 1e-9 * span) k--;
  *even_share = span > 0 ? (points->hours[m - 1] - points->hours[k]) / span : 1;
  return k;
}

/* Has the growth gone on to the end? Sets *share to how the last third compares with even growth. */
static bool goes_on(const struct hp_trend_points *points, double *share) {
  size_t m = points->count;
  double even;
  size_t k = last_third(points, &even);
  double whole = points->bytes[m - 1] - points->bytes[0], last = points->bytes[m - 1] - points->bytes[k];
  *share = whole > 0 ? last / (whole * even) : 0;
  double worth, samples_per_byte;
  sample_worth(mean_size_of(points), points->period_bytes, &worth, &samples_per_byte);
  return *share >= 0.5 && last > 0 && last >= 2 * worth * sqrt(last * samples_per_byte);
}

/* More than sampling alone makes of nothing, from the first to the last dump. */
static bool has_grown(const struct hp_trend_points *points) {
  double growth = points->bytes[points->count - 1] - points->bytes[0], worth, samples_per_byte;
  sample_worth(mean_size_of(points), points->period_bytes, &worth, &samples_per_byte);
  return growth * samples_per_byte > SAMPLES_MIN && growth > 4 * worth * sqrt(growth * samples_per_byte);
}

static bool rises_steadily(const struct hp_trend_points *points) {
  double mean_size = mean_size_of(points);
  size_t rises = 0;
  for (size_t k = 0; k + 1 < points->count; k++) {
    double d = points->bytes[k + 1] - points->bytes[k], worth, samples_per_byte;
    sample_worth(changed_size(points, k, mean_size), points->period_bytes, &worth, &samples_per_byte);
    if (d < -MONOTONE_SAMPLES * worth) return false;
    if (d > 0) rises++;
  }
  return 2 * rises >= points->count - 1;
}

static bool is_worth_testing(const struct hp_trend_points *points, double samples) {
  size_t present = 0;
  for (size_t i = 0; i < points->count; i++)
    if (points->bytes[i] > 0) present++;
  return present >= 3 && samples > SAMPLES_MIN;
}

static double p_of(const struct line *line, size_t count) {
  if (!(line->slope > 0) || !(line->error > 0)) return 1;
  return hp_trend_student_tail(line->slope / line->error, (double)count - 2);
}

void hp_trend_fit(const struct hp_trend_points *points, struct hp_trend_fit *out) {
  struct line whole = fit_line(points);
  memset(out, 0, sizeof *out);
  out->slope = whole.slope;
  out->slope_error = whole.error;
  out->is_tested = is_worth_testing(points, whole.samples);
  out->is_monotone = rises_steadily(points);
  out->p_adjusted = 1;
  out->p_value = p_of(&whole, points->count);
  struct hp_trend_points window = *points;
  if (points->count / 2 >= WINDOW_DUMPS_MIN) {
    struct hp_trend_points half = points_from(points, points->count / 2);
    struct line late = fit_line(&half);
    double p = p_of(&late, half.count);
    if (p < out->p_value) {
      out->p_value = p;
      out->window_start = points->count / 2;
      window = half;
    }
    out->p_value = fmin(1, 2 * out->p_value);
  }
  if (goes_on(&window, &out->last_share)) return;
  out->levels_off = has_grown(points) && !goes_on(points, &out->last_share);
  out->p_value = fmax(out->p_value, 0.5); /* whatever it was, the growth is over */
}

size_t hp_trend_correct(struct hp_trend_fit *const *fits_by_p, size_t count) {
  size_t tested = 0, rank = 0;
  double running = 0;
  for (size_t i = 0; i < count; i++)
    if (fits_by_p[i]->is_tested) tested++;
  for (size_t i = 0; i < count; i++) {
    struct hp_trend_fit *fit = fits_by_p[i];
    if (!fit->is_tested) continue;
    running = fmax(running, fmin(1, fit->p_value * (double)(tested - rank)));
    rank++;
    fit->p_adjusted = running;
    fit->is_suspect = running < HP_TREND_FALSE_ALARM;
  }
  return tested;
}

static int compare_down(double a, double b) { return a > b ? -1 : a < b; }

int hp_trend_fit_compare(const struct hp_trend_fit *a, const struct hp_trend_fit *b) {
  if (a->is_suspect != b->is_suspect) return a->is_suspect ? -1 : 1;
  if (a->is_suspect) return compare_down(a->slope, b->slope);
  bool grows_a = a->is_monotone && !a->levels_off, grows_b = b->is_monotone && !b->levels_off;
  if (grows_a != grows_b) return grows_a ? -1 : 1;
  if (a->p_value != b->p_value) return compare_down(-a->p_value, -b->p_value);
  return compare_down(a->slope, b->slope);
}
