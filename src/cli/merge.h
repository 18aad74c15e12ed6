/* SPDX-License-Identifier: MIT
 * merge.h - sums and differences of profiles, of one process or of many.
 *
 * Rows are joined by what the code is, not by where it was loaded: a mapping by build id (or by file name where there is none) and
 * offset, a location by its mapping and its offset in the file (and its lines, if it has any), a stack by its locations and labels.
 * So runs under address space randomisation meet. Memory: the sum, and one profile at a time.
 */
#ifndef HP_MERGE_H
#define HP_MERGE_H

#include "cli_error.h"
#include "profile_model.h"
#include "profile_origin.h"

struct hp_merge;

/* An empty sum. */
struct hp_merge *hp_merge_new(void);

/* Adds `scale` (1, or -1 for the old side of a difference) times every sample. The first profile's sample types are the sum's; a
 * later one must have them all, by name and unit, in any order; more are ignored. The profile is not kept;
 * the first name is. Returns 0, or -1 and one sentence that names `name` and it. */
int hp_merge_add(struct hp_merge *merge, const struct hp_profile *profile, const char *name, int64_t scale,
                 struct hp_error *error);

/* The sum, without rows that are all zero; the caller frees it. The merge is freed. Time is that of the latest profile, duration
 * the sum (of a difference: the span between the two), the period the largest, comments those that all share but for the figures of
 * one process, and the mark of a difference. */
struct hp_profile *hp_merge_finish(struct hp_merge *merge);

/* Reads the files one after the other and sums them up; one file is just read. "-" is stdin. `origins` (all zero)
 * says then which are of one process, when there are several; the caller frees it, also after a failure. */
int hp_merge_files(char *const *paths, size_t count, struct hp_origins *origins, struct hp_profile **out,
                   struct hp_error *error);

#endif
