/* SPDX-License-Identifier: MIT
 * trend_fit.h - does the memory of one stack grow, how fast, and how sure is that? (Derivation in trend_fit.c.)
 */
#ifndef HP_TREND_FIT_H
#define HP_TREND_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fewer dumps than this have no slope worth its error. */
#define HP_TREND_DUMPS_MIN 3

/* One minus the confidence at which growth makes a leak suspect, for all stacks of a run together. */
#define HP_TREND_FALSE_ALARM 0.001

/* The series of one stack: `count` dumps in order of time. */
struct hp_trend_points {
  const double *hours; /* since any origin, not falling */
  const double *bytes; /* in-use estimates */
  const double *objects;
  size_t count;
  int64_t period_bytes; /* sample rate; 0 or 1: every allocation was recorded */
};

struct hp_trend_fit {
  double slope;        /* bytes an hour, least squares over all dumps */
  double slope_error;  /* its standard error, persistent fluctuations assumed */
  double p_value;      /* one-sided, that a stack without growth rises like this; 1: cannot be told */
  double p_adjusted;   /* after Holm's correction for the number of stacks (hp_trend_correct) */
  double last_share;   /* growth in the last third of the time, over what even growth would have brought there */
  size_t window_start; /* p_value is of the dumps from this one on */
  bool is_tested;      /* there is enough of it to have an opinion */
  bool is_monotone;    /* rises in at least half of the intervals, and never falls by more than a sample */
  bool levels_off;     /* grew, but no longer at half of its mean rate in the last third */
  bool is_suspect;     /* set by hp_trend_correct */
};

/* Fits one series of at least HP_TREND_DUMPS_MIN dumps; p_adjusted and is_suspect are left at 1 and false. */
void hp_trend_fit(const struct hp_trend_points *points, struct hp_trend_fit *out);

/* Holm's step-down correction over the fits that are tested; fits[order[i]] must have p_values that do not fall. Returns how
 * many were tested. */
size_t hp_trend_correct(struct hp_trend_fit *const *fits_by_p, size_t count);

/* The order of the list: suspects by slope, then what rises steadily, then the rest, each by p-value.
 * Negative, 0 or positive as for qsort. */
int hp_trend_fit_compare(const struct hp_trend_fit *a, const struct hp_trend_fit *b);

/* P(T > t) of Student's distribution with `freedom` degrees of freedom, t >= 0; accurate far out in the tail. */
double hp_trend_student_tail(double t, double freedom);

#endif
