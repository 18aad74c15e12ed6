/* SPDX-License-Identifier: MIT
 * command.c - see command.h: the table of verbs, --help, --version, and the last check of stdout.
 */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile_reader.h"

static const struct hp_command commands[] = {
    {"run", "profile a command, then show where its memory is", hp_cmd_run},
    {"dump", "ask a running profiled process for a profile now", hp_cmd_dump},
    {"top", "table of the functions (or lines) that hold or allocate most", hp_cmd_top},
    {"diff", "growth between two profiles", hp_cmd_diff},
    {"merge", "sum of many profiles", hp_cmd_merge},
    {"symbolize", "add functions, files, lines and inlined frames", hp_cmd_symbolize},
    {"view", "one self-contained HTML page: flame graph, table, search", hp_cmd_view},
    {"trend", "which stacks grow over a series of profiles, and how fast", hp_cmd_trend},
    {"serve", "answer /debug/pprof/ and /metrics over HTTP", hp_cmd_serve},
};

static int print_help(void) {
  puts(
      "usage: heapprof COMMAND [option]... [argument]...\n"
      "Heap profiles of native programs: take them, read them, compare them.\n");
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    printf("  %-10s %s\n", commands[i].name, commands[i].help);
  puts(
      "\nheapprof COMMAND --help says more; heapprof --version prints the version.\n"
      "FILE is any pprof profile, gzipped or not; - is standard input or output.\n"
      "Exit status: 0 done, 1 failed (one line says why), 2 bad usage.\n"
      "The manual is heapprof(1).");
  return 0;
}

/* A full disk or a closed pipe shows only when the last bytes leave. */
static int finish(int status) {
  if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
    hp_note("cannot write to standard output: %s", strerror(errno));
    return 1;
  }
  return status;
}

static int apply_environment(void) {
  const char *limit = getenv("HEAPPROF_READ_LIMIT");
  uint64_t limit_bytes;
  if (limit == NULL || limit[0] == '\0') return 0;
  if (hp_parse_size(limit, &limit_bytes) != 0 || limit_bytes == 0) {
    hp_note("HEAPPROF_READ_LIMIT=%s is no size (a number with an optional suffix k, m, g)", limit);
    return 2;
  }
  hp_profile_read_limit_set(limit_bytes);
  return 0;
}

int hp_command_main(int argc, char **argv) {
  if (argc < 2) {
    hp_note("a command is missing (see heapprof --help)");
    return 2;
  }
  const char *verb = argv[1];
  if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0) return finish(print_help());
  if (strcmp(verb, "--version") == 0 || strcmp(verb, "-V") == 0) {
    puts("heapprof " HEAPPROF_VERSION);
    return finish(0);
  }
  int status = apply_environment();
  if (status != 0) return status;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (strcmp(verb, commands[i].name) != 0) continue;
    opterr = 0;
    optind = 0; /* glibc: start afresh */
    return finish(commands[i].run(argc - 1, argv + 1));
  }
  hp_note("no command %s (see heapprof --help)", verb);
  return 2;
}

int hp_option_error(const char *verb, char **argv, int result) {
  const char *option = optind > 0 ? argv[optind - 1] : "";
  if (result == ':') return hp_usage(verb, "option %s needs a value", option);
  if (optopt != 0 && strncmp(option, "--", 2) != 0) return hp_usage(verb, "no option -%c", optopt);
  return hp_usage(verb, "bad option %s", option);
}

int hp_parse_integer(const char *text, int64_t low, int64_t high, int64_t *out) {
  if (text[0] == '\0' || text[0] == ' ') return -1;
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < low || value > high) return -1;
  *out = value;
  return 0;
}

int hp_option_count(const char *verb, const char *text, int64_t *out) {
  if (hp_parse_integer(text, 0, INT32_MAX, out) == 0) return 0;
  return hp_usage(verb, "-n %s is no number from 0 to %d", text, INT32_MAX);
}

int hp_parse_size(const char *text, uint64_t *out_bytes) {
  if (text[0] < '0' || text[0] > '9') return -1;
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  unsigned shift = 0;
  if (*end != '\0') {
    switch (*end++) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      default: return -1;
    }
  }
  if (errno != 0 || *end != '\0' || value > UINT64_MAX >> 1 >> shift) return -1;
  *out_bytes = (uint64_t)value << shift;
  return 0;
}
