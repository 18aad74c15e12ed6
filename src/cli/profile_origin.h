/* SPDX-License-Identifier: MIT
 * profile_origin.h - which of several profiles are of one process, as far as the files say.
 *
 * A process is known by its start (the time of the profile less its duration, exact to the nanosecond in files of this library)
 * and its program (build id, or file name), and by the process id in names like the default template's: a child of fork has its parent's
 * start, since it has its parent's blocks. Not known: files of other makers, sums (their duration is no span), files without
 * a duration. A reset of the allocated columns (heapprof_reset) and a clock that is set move the start, so what
 * follows reads as another process.
 * Ownership   hp_origins_free frees all; the paths are the caller's.
 */
#ifndef HP_PROFILE_ORIGIN_H
#define HP_PROFILE_ORIGIN_H

#include "id_map.h"
#include "profile_model.h"

struct hp_origin {
  size_t profile_count;
  int64_t last_time_nanos;
  const char *last_path; /* of the profile taken last */
};

struct hp_origins { /* all zero: none yet */
  struct hp_id_map map;
  struct hp_origin *list;
  size_t count, capacity;
};

/* The process id in a file name that ends like those of the default template, ".PID.NUMBER[.KIND].pb.gz"; 0: it does not, or what
 * stands there is the time of the profile (%t). */
int64_t hp_origin_pid_in_name(const char *path, int64_t time_nanos);

/* The index in list[] of the process of `profile`, counted there; HP_NONE: the file does not say. */
uint32_t hp_origins_add(struct hp_origins *origins, const struct hp_profile *profile, const char *path);

/* A line on stderr for a sum that has a process more than once: its columns all count from its start, so the same blocks are
 * in it several times. */
void hp_origins_note_sum(const struct hp_origins *origins);

void hp_origins_free(struct hp_origins *origins);

#endif
