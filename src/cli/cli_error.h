/* SPDX-License-Identifier: MIT
 * cli_error.h - one sentence that says why something failed.
 *
 * Functions of the command that can fail return 0, or -1 with the sentence in *error (never a trailing newline, never control
 * characters: names from hostile files are made printable on the way in). Only a cmd_*.c prints it, with hp_fail.
 */
#ifndef HP_CLI_ERROR_H
#define HP_CLI_ERROR_H

#define HP_ERROR_MAX 640

struct hp_error {
  char text[HP_ERROR_MAX];
};

/* Formats the sentence into *error (cut at HP_ERROR_MAX - 1 bytes, control characters made '?'); error may be null.
 * Always returns -1, so that a caller can `return hp_error_set(...)`. */
int hp_error_set(struct hp_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "heapprof: <text>" as one line on stderr. Returns 1, the exit status of a failed command. */
int hp_fail(const struct hp_error *error);

/* The same for a bad call: "heapprof VERB: <text> (see heapprof VERB --help)". Returns 2. */
int hp_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line "heapprof: ..." on stderr that does not end the command: something was skipped or could not be found. */
void hp_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
