/* SPDX-License-Identifier: MIT
 * symbolize.h - functions, files, lines and inlined frames for a profile's addresses, from the binaries on this machine.
 */
#ifndef HP_SYMBOLIZE_H
#define HP_SYMBOLIZE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli_error.h"
#include "profile_model.h"

struct hp_symbolize_options {
  const char *debug_dirs; /* colon list of folders with binaries or .build-id trees, searched first; null: none */
  bool force;             /* also mappings that say they have functions already */
  bool verbose;           /* each mapping that was not found, and where it was looked for, on stderr */
  bool progress;          /* a line that counts, on stderr */
};

/* Replaces the lines of every location it can resolve; sets the mappings' has_ flags; names are demangled, system_name kept.
 * Locations it cannot resolve stay as they are. Returns 0; failure to find a binary is no error. */
int hp_symbolize(struct hp_profile *profile, const struct hp_symbolize_options *options, struct hp_error *error);

/* Demangles the names that are there (C++, Rust legacy and v0), for profiles that carry linker names. */
void hp_symbolize_demangle(struct hp_profile *profile);

#endif
