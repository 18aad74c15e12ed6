/* SPDX-License-Identifier: MIT
 * profile_writer.h - a model to a gzipped pprof file, one packed sub-message at a time.
 */
#ifndef HP_PROFILE_WRITER_H
#define HP_PROFILE_WRITER_H

#include "cli_error.h"
#include "profile_model.h"

/* Writes to `path` as output_file.h says. ids are 1, 2, 3, ... in order. Returns 0, or -1 and one sentence; then no file is left. */
int hp_profile_write(const char *path, const struct hp_profile *profile, struct hp_error *error);

/* The same into memory: *out_bytes (malloc'd, the caller frees) and *out_length. */
int hp_profile_write_memory(const struct hp_profile *profile, void **out_bytes, size_t *out_length_bytes,
                            struct hp_error *error);

#endif
