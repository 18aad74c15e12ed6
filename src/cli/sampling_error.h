/* SPDX-License-Identifier: MIT
 * sampling_error.h - how far a sampled figure may be from the truth (derivation in sampling_error.c).
 *
 * Add up the stacks (pprof samples) of a row, then ask for the standard error: the truth lies within 1.96 of it in at least
 * 93 of 100 rows (objects: where the sizes of a stack do not differ by orders of magnitude). Rate 1 (or no rate: 0) gives 0.
 * All figures in the row's unit: bytes or objects.
 */
#ifndef HP_SAMPLING_ERROR_H
#define HP_SAMPLING_ERROR_H

#include <stdint.h>

struct hp_sampling_variance {
  double sum;            /* of the variances of the stacks */
  double one_sample_max; /* the variance one more sample would have brought, largest among the stacks */
};

/* Both figures of one stack added: `bytes` and `objects` may be null if not wanted. The period is in bytes; estimates are taken by
 * their absolute value. */
void hp_sampling_variance_add(struct hp_sampling_variance *bytes, struct hp_sampling_variance *objects, int64_t period_bytes,
                              int64_t objects_estimate, int64_t bytes_estimate);

/* One variance into another: rows summed, or a difference of two rows. Inline: it is done for each frame of each stack. */
static inline void hp_sampling_variance_merge(struct hp_sampling_variance *into, const struct hp_sampling_variance *from) {
  into->sum += from->sum;
  if (from->one_sample_max > into->one_sample_max) into->one_sample_max = from->one_sample_max;
}

/* The standard error. */
double hp_sampling_error(const struct hp_sampling_variance *variance);

#endif
