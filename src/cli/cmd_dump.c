/* SPDX-License-Identifier: MIT
 * cmd_dump.c - heapprof dump: asks a running process for a profile and prints its path. The asking is dump_request.c's.
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "dump_request.h"

enum { TIMEOUT_SECONDS = 30 };

static const char help[] =
    "usage: heapprof dump [option]... PID\n"
    "Asks a running profiled process for a profile, waits for it, prints its path.\n"
    "\n"
    "  -t, --timeout=S    seconds to wait (default 30)\n"
    "\n"
    "PID may be the id of a thread, and may be in a container: the path printed is\n"
    "the one seen from here. The process must have been started with libheapprof.so\n"
    "(heapprof run, or LD_PRELOAD) and be yours, or you root. The signal is the one\n"
    "that HEAPPROF_SIGNAL named when it started, SIGUSR2 by default; it is not sent\n"
    "to a process without a handler for it. Where the file goes is said by\n"
    "HEAPPROF_OUT in the environment the process was started with.";

static const struct option options[] = {
    {"timeout", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

static int dump_process(int64_t pid, int64_t seconds) {
  struct hp_out_list files;
  struct hp_error error;
  int result = hp_dump_request(pid, seconds, &files, &error);
  for (size_t i = 0; i < files.count; i++) puts(files.files[i].path);
  hp_out_list_free(&files);
  return result == 0 ? 0 : hp_fail(&error);
}

int hp_cmd_dump(int argc, char **argv) {
  int64_t seconds = TIMEOUT_SECONDS, pid;
  int option;
  while ((option = getopt_long(argc, argv, ":t:h", options, NULL)) != -1) {
    switch (option) {
      case 't':
        if (hp_parse_integer(optarg, 1, 86400, &seconds) != 0)
          return hp_usage("dump", "-t %s is no number of seconds", optarg);
        break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("dump", argv, option);
    }
  }
  if (argc - optind != 1) return hp_usage("dump", "one process id is needed");
  if (hp_parse_integer(argv[optind], 1, INT32_MAX, &pid) != 0) return hp_usage("dump", "%s is no process id", argv[optind]);
  return dump_process(pid, seconds);
}
