/* SPDX-License-Identifier: MIT
 * profile_runs.h - the bytes of a profile in runs of whole fields, unpacked.
 *
 * A Profile message is a run of top-level fields, so any run of whole fields is a Profile message by itself: protobuf-c unpacks run
 * after run, and nobody holds the whole file. Of large inputs a second thread inflates ahead, and unpacks too whenever it is ahead
 * by all it may: so both have the same to do, whatever the file is made of.
 */
#ifndef HP_PROFILE_RUNS_H
#define HP_PROFILE_RUNS_H

#include <stdbool.h>

#include "byte_source.h"
#include "cli_error.h"
#include "profile.pb-c.h"

struct hp_profile_runs;

/* Runs of a source, which is not to be touched before hp_profile_runs_free. `ahead`: in a second thread, if one is to be had; only for
 * what can be read without waiting (a regular file, memory), since hp_profile_runs_free waits for the thread. */
struct hp_profile_runs *hp_profile_runs_new(struct hp_byte_source *source, bool ahead);

/* The next run, valid until the next call; null: the end. Returns 0, or -1 and one sentence: what hp_byte_source_read says, or that this
 * is no profile; the same one with a thread and without. After -1 there is no further call but hp_profile_runs_free. */
int hp_profile_runs_next(struct hp_profile_runs *runs, const Perftools__Profiles__Profile **run, struct hp_error *error);

/* Ends the thread and frees; the source stays the caller's. */
void hp_profile_runs_free(struct hp_profile_runs *runs);

/* Sets the sentence that the profile called `name` is none, and why. Returns -1. */
int hp_profile_malformed(const char *name, const char *why, struct hp_error *error);

/* The same: that it takes more memory than the limit. */
int hp_profile_too_large(const char *name, uint64_t limit_bytes, struct hp_error *error);

#endif
