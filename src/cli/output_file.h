/* SPDX-License-Identifier: MIT
 * output_file.h - where a result goes: standard output, a new file that appears whole or not at all, or a device or pipe.
 *
 * A file is written without a name where the file system has such files, else beside its own (mode 0666 less umask), and renamed: a
 * reader never sees half of it, a command that is interrupted leaves none, a link by that name is replaced and not followed. What
 * is no regular file (/dev/null, a pipe), or a link to a descriptor (/dev/stderr), is opened and written, never replaced.
 */
#ifndef HP_OUTPUT_FILE_H
#define HP_OUTPUT_FILE_H

#include <stdbool.h>

#include "cli_error.h"

struct hp_output_file {
  int fd;          /* write here */
  char *temporary; /* null: what fd writes to is the target itself, or has no name yet */
  bool is_unnamed;
  const char *path;
};

/* "-", and any name of the file that standard output is (/dev/stdout), is standard output. `path` must live until the end.
 * 0, or -1 and one sentence: then there is nothing to finish. */
int hp_output_file_open(struct hp_output_file *output, const char *path, struct hp_error *error);

/* Ends it: failed_errno 0 puts the file in its place; otherwise no file is left, and the sentence says why. 0 or -1. */
int hp_output_file_finish(struct hp_output_file *output, int failed_errno, struct hp_error *error);

#endif
