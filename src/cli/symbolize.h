/* SPDX-License-Identifier: MIT
 * symbolize.h - functions, files, lines and inlined frames for a profile's addresses, from the binaries on this machine.
 */
#ifndef HP_SYMBOLIZE_H
#define HP_SYMBOLIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile_model.h"

struct hp_symbolize_options {
  const char *debug_dirs; /* colon list of folders with binaries or .build-id trees, searched first; null: none */
  int64_t jit_pid;        /* of /tmp/perf-PID.map; 0: none */
  bool force;             /* also mappings that say they have functions already */
  bool report;            /* on stderr: each binary that was not found, and where it was looked for */
  bool progress;          /* on stderr: a line that counts */
};

/* Replaces the lines of every location it can resolve; sets the mappings' has_ flags; names are demangled, system_name kept.
 * Locations it cannot resolve stay as they are; a binary that is not found is no error. */
void hp_symbolize(struct hp_profile *profile, const struct hp_symbolize_options *options);

/* What a report needs before it sums up: a profile without any names is symbolized, one with linker names demangled; with
 * `want_lines` also mappings whose lines are missing. Nothing is printed. */
void hp_symbolize_for_report(struct hp_profile *profile, const struct hp_symbolize_options *options, bool want_lines);

/* Demangles the names that are there (C++, Rust legacy and v0), for profiles that carry linker names. */
void hp_symbolize_demangle(struct hp_profile *profile);

#endif
