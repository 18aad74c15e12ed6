/* SPDX-License-Identifier: MIT
 * child_run.h - runs a command as if the caller had become it: terminal, signals, job control and exit status.
 */
#ifndef HP_CHILD_RUN_H
#define HP_CHILD_RUN_H

#include <sys/types.h>

#include "cli_error.h"

/* Starts command[0] (searched in PATH) with the present environment and waits for its end. Signals sent to us are passed on,
 * except those the terminal has sent to both; a stop of the child stops us, and our continuation continues it. Returns the exit status,
 * 128 + n for signal n; *out_pid is the child's. -1 and one sentence if it could not be started. Single-threaded callers only. */
int hp_child_run(char **command, pid_t *out_pid, struct hp_error *error);

#endif
