/* SPDX-License-Identifier: MIT
 * dump_request.h - asks a running profiled process for a profile and waits for the files.
 */
#ifndef HP_DUMP_REQUEST_H
#define HP_DUMP_REQUEST_H

#include <stdint.h>

#include "cli_error.h"
#include "out_template.h"

/* Signals the process (or the process of thread `pid`) and waits, `seconds` at most, for what it writes: *files are the new
 * files, one or more (hp_out_list_free). Returns 0, or -1 and one sentence for whatever is wrong with the process. One
 * request to a process at a time: two would take each other's files for their own. */
int hp_dump_request(int64_t pid, int64_t seconds, struct hp_out_list *files, struct hp_error *error);

#endif
