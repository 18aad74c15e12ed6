/* SPDX-License-Identifier: MIT
 * frame_filter.h - which stacks and frames a report is about: focus, ignore, and the profile's own drop_frames.
 *
 * A frame matches by function name, file name, or the file its mapping belongs to, as in pprof. Expressions are POSIX extended.
 */
#ifndef HP_FRAME_FILTER_H
#define HP_FRAME_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "cli_error.h"
#include "profile_model.h"

struct hp_filter;

/* Stacks with a frame that matches focus and without one that matches ignore; either may be null. The profile must outlive the
 * filter; every location is matched once, here. Returns null and one sentence for an expression that does not compile. */
struct hp_filter *hp_filter_new(const struct hp_profile *profile, const char *focus, const char *ignore,
                                struct hp_error *error);
bool hp_filter_passes(const struct hp_filter *filter, size_t sample);
void hp_filter_free(struct hp_filter *filter);

/* Cuts off frames beneath those that the profile's drop_frames names and keep_frames does not (pprof's rule: never before the
 * first frame of the program itself, counted from the root). Expressions from a file are taken only if cheap to compile. */
void hp_profile_drop_frames(struct hp_profile *profile);

#endif
