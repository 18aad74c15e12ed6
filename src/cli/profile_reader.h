/* SPDX-License-Identifier: MIT
 * profile_reader.h - any pprof file to a model; the file is hostile until proved otherwise.
 *
 * Input is gunzipped as it comes (or taken as it is when it does not start like gzip), cut at the boundaries of the top-level
 * fields, and unpacked by protobuf-c some hundred KiB at a time; ids become indices at the end. Memory is the model plus that.
 */
#ifndef HP_PROFILE_READER_H
#define HP_PROFILE_READER_H

#include "cli_error.h"
#include "profile_model.h"

/* Raw bytes after gunzip, and bytes of the model, at which a file counts as a decompression bomb. */
#define HP_READ_LIMIT_BYTES ((uint64_t)4 << 30)

/* Changes the limit for the rest of the process; 0: back to the default. HEAPPROF_READ_LIMIT (a size with suffix k, m, g) in the
 * environment does the same for the command. */
void hp_profile_read_limit_set(uint64_t limit_bytes);

/* Of how much input on a second thread inflates and unpacks ahead; UINT64_MAX: of none, 0: back to the default. For tests. */
void hp_profile_read_ahead_set(uint64_t input_bytes);

/* Reads a profile from a file; "-" is stdin. Returns 0 and the profile (the caller frees it), or -1 and one sentence that names
 * the file and says what is wrong with it. */
int hp_profile_read(const char *path, struct hp_profile **out, struct hp_error *error);

/* The same from memory; `name` is for the error's sentence. The command has only files: this is for the unit tests and the fuzz targets. */
int hp_profile_read_memory(const char *name, const void *bytes, size_t length_bytes, struct hp_profile **out,
                           struct hp_error *error);

#endif
