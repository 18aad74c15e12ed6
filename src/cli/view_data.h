/* SPDX-License-Identifier: MIT
 * view_data.h - profiles to the numbers of the page: strings once, frames once, stacks as a tree, values by node.
 *
 *   { files [{name, time_ms, duration_ms, period, comments}], program, types [{type, unit, partner}], default_type, strings
 * [], frames {name [], module [], file [], line []}                    indices into strings nodes {up [], frame []}     node
 * i+1 has parent i+1-up[i]; preorder; node 0 is the empty stack rows {node [], values [[] a type], variances [null or [sum
 * [], one sample []] a type]} a row a sample; node as the difference from the row before; variances as in sampling_error.h
 *     base (the same for the file compared with) or null, one_sample_weight (a standard error is
 *     the root of sum + this times the largest one sample), reconcile {key: value} or null, trend {} or null }
 */
#ifndef HP_VIEW_DATA_H
#define HP_VIEW_DATA_H

#include <stdio.h>

#include "cli_error.h"
#include "profile_model.h"
#include "trend_series.h"

struct hp_view_input {
  const struct hp_profile *profile; /* what is shown */
  const struct hp_profile *base;    /* what it is compared with, or null; has the same sample types */
  const char *name;                 /* of the file, for people; base_name: of the other */
  const char *base_name;
  const struct hp_trend *trend;  /* or null */
  struct hp_view_frames *frames; /* filled further; those of the trend, if there is one */
  const char *type;              /* the sample type shown first; null: the profile's default */
  const char *focus;
  const char *ignore;
};

/* Writes the JSON text. 0, or -1 and a sentence (bad expression, no such type, sample types that differ). */
int hp_view_data_write(FILE *out, const struct hp_view_input *input, struct hp_error *error);

#endif
