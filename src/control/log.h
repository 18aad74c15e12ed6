/* SPDX-License-Identifier: MIT
 * log.h - one line to stderr (or HEAPPROF_LOG_FILE): `heapprof[pid]: level: text`.
 *
 * Rules       never blocks the program: a pipe that is full or closed loses the line, SIGPIPE is held back.
 *             Descriptor 2 is only written to while it is plausibly the program's error stream: what it was at start, a
 *             terminal or /dev/null, or a file opened for appending. A program that closed its stderr and got the number for
 *             a file, a socket or a pipe of its own keeps its data.
 *             A log file that cannot be opened is said once, on stderr, and its errors and warnings go there.
 * Signals     async-signal-safe. Any thread. errno untouched. */
#ifndef HP_LOG_H
#define HP_LOG_H

#include "config.h"

/* At start-up, before the first line; remembers what descriptor 2 is. */
void hp_log_init(void);
/* At start-up. absolute_file: kept, not copied; NULL: stderr. */
void hp_log_configure(enum hp_log_level level, const char *absolute_file);

/* format as hp_text_add() knows it (base/format.h); what is longer than a line of 500 bytes is cut. */
void hp_log(enum hp_log_level level, const char *format, ...) HP_PRINTF(2, 3);

/* Text of an errno value ("No such file or directory"), without locale. For the common ones; others: "error N" is up to the
 * caller (NULL). */
const char *hp_log_errno_text(int error);

#endif
