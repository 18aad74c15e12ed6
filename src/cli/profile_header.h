/* SPDX-License-Identifier: MIT
 * profile_header.h - what a profile says about itself: time, duration, rate, comments (with the reconciliation with RSS).
 */
#ifndef HP_PROFILE_HEADER_H
#define HP_PROFILE_HEADER_H

#include <stdio.h>

#include "profile_model.h"
#include "text_output.h"

/* The lines above a table: program, time, duration, sample rate, then the profile's comments. */
void hp_profile_header_print(FILE *out, const struct hp_profile *profile);

/* The same as members of the object that is open: "program", "build_id", "time_nanos", "duration_nanos", "period", "period_unit",
 * "sample_types" [{type, unit}], "comments" []. */
void hp_profile_header_json(struct hp_json *json, const struct hp_profile *profile);

#endif
