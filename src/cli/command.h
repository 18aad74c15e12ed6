/* SPDX-License-Identifier: MIT
 * command.h - the subcommands of heapprof(1) and what all of them share.
 *
 * A subcommand lives in cmd_<verb>.c and defines `int hp_cmd_<verb>(int argc, char **argv)`; argv[0] is the verb, the rest its
 * arguments, parsed with getopt_long (optind is 0 on entry, opterr 0: report bad options with hp_option_error).
 * It returns the exit status: 0 done, 1 failed (one line on stderr says why), 2 bad usage. main flushes and checks stdout.
 */
#ifndef HP_COMMAND_H
#define HP_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "cli_error.h"

struct hp_command {
  const char *name;
  const char *help; /* one line of `heapprof --help` */
  int (*run)(int argc, char **argv);
};

int hp_cmd_run(int argc, char **argv);
int hp_cmd_dump(int argc, char **argv);
int hp_cmd_top(int argc, char **argv);
int hp_cmd_diff(int argc, char **argv);
int hp_cmd_merge(int argc, char **argv);
int hp_cmd_symbolize(int argc, char **argv);
int hp_cmd_view(int argc, char **argv);
int hp_cmd_trend(int argc, char **argv);
int hp_cmd_serve(int argc, char **argv);

/* What to do when the profile at hand holds nothing in use. */
#define HP_HINT_WHILE_IT_RUNS "For what grows take profiles while it runs: --period, heapprof dump"

/* Lines of help and entries of getopt's table that the commands about stacks have alike. */
#define HP_HELP_STACKS                                                               \
  "  -f, --focus=ERE    only stacks with a function, file or library that matches\n" \
  "  -i, --ignore=ERE   leave out stacks with one that matches\n"
#define HP_HELP_DEBUG_DIR "  -d, --debug-dir=D  folders with binaries or debug files, colon separated\n"
#define HP_HELP_WIDE "  -w, --wide         names in full, however long; a terminal gets them shortened\n"
#define HP_OPTIONS_STACKS                                                                                               \
  {"lines", no_argument, NULL, 'l'}, {"focus", required_argument, NULL, 'f'}, {"ignore", required_argument, NULL, 'i'}, \
      {"debug-dir", required_argument, NULL, 'd'}, {                                                                    \
    "help", no_argument, NULL, 'h'                                                                                      \
  }
#define HP_OPTIONS_TABLE \
  {"count", required_argument, NULL, 'n'}, {"wide", no_argument, NULL, 'w'}, { "json", no_argument, NULL, 'j' }
#define HP_OPTIONS_END \
  { NULL, 0, NULL, 0 }

/* Finds the verb in argv[1] and runs it; `heapprof --help`, `--version`. Called by main only. */
int hp_command_main(int argc, char **argv);

/* What a getopt_long result of '?' or ':' was about, as a usage error of `verb`. Returns 2. */
int hp_option_error(const char *verb, char **argv, int result);

/* A whole number in [low, high]: 0 and *out, or -1. */
int hp_parse_integer(const char *text, int64_t low, int64_t high, int64_t *out);

/* What -n takes, the number of rows: 0 and *out, or the status of a usage error of `verb`. */
int hp_option_count(const char *verb, const char *text, int64_t *out);

/* Bytes with an optional suffix k, m, g (2^10, 2^20, 2^30), as HEAPPROF_SAMPLE_RATE takes them: 0 and *out, or -1. */
int hp_parse_size(const char *text, uint64_t *out_bytes);

#endif
