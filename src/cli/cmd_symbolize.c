/* SPDX-License-Identifier: MIT
 * cmd_symbolize.c - heapprof symbolize: a profile with functions, files, lines and inlined frames (the work is symbolize.c's).
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "profile_origin.h"
#include "profile_reader.h"
#include "profile_writer.h"
#include "symbolize.h"

static const char help[] =
    "usage: heapprof symbolize FILE -o OUT [option]...\n"
    "Adds functions, files, lines and inlined frames, from the binaries on this\n"
    "machine or their debug files. C++ and Rust names are demangled.\n"
    "\n"
    "  -o, --output=OUT    the profile to write; - is standard output\n"
    "  -d, --debug-dir=D   folders looked at first, colon separated: binaries, or a\n"
    "                      .build-id tree\n"
    "  -p, --pid=PID       names of JIT code from /tmp/perf-PID.map (default: the pid\n"
    "                      in a file name like heapprof.NAME.PID.N.pb.gz)\n"
    "  -f, --force         also what the profile says is symbolized already\n"
    "  -q, --quiet         say nothing about binaries that are not found\n"
    "\n"
    "Debug information is looked for in the binary, by .gnu_debuglink, and by build\n"
    "id in /usr/lib/debug/.build-id. Servers are asked only if DEBUGINFOD_URLS names\n"
    "some. A binary with another build id than the profile's is never used.";

static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                        {"debug-dir", required_argument, NULL, 'd'},
                                        {"pid", required_argument, NULL, 'p'},
                                        {"force", no_argument, NULL, 'f'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

static int symbolize(const char *path, const char *output, struct hp_symbolize_options *wanted) {
  struct hp_error error;
  struct hp_profile *profile;
  if (hp_profile_read(path, &profile, &error) != 0) return hp_fail(&error);
  if (wanted->jit_pid == 0) wanted->jit_pid = hp_origin_pid_in_name(path, profile->time_nanos);
  hp_symbolize(profile, wanted);
  int result = hp_profile_write(output, profile, &error);
  hp_profile_free(profile);
  return result == 0 ? 0 : hp_fail(&error);
}

int hp_cmd_symbolize(int argc, char **argv) {
  const char *output = NULL;
  struct hp_symbolize_options wanted = {.report = true, .progress = isatty(STDERR_FILENO) != 0};
  int option;
  while ((option = getopt_long(argc, argv, ":o:d:p:fqh", options, NULL)) != -1) {
    switch (option) {
      case 'o': output = optarg; break;
      case 'd': wanted.debug_dirs = optarg; break;
      case 'p':
        if (hp_parse_integer(optarg, 1, INT32_MAX, &wanted.jit_pid) != 0)
          return hp_usage("symbolize", "-p %s is no pid", optarg);
        break;
      case 'f': wanted.force = true; break;
      case 'q': wanted.report = wanted.progress = false; break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("symbolize", argv, option);
    }
  }
  if (argc - optind != 1) return hp_usage("symbolize", "one profile is needed");
  if (output == NULL) return hp_usage("symbolize", "-o OUT is missing");
  return symbolize(argv[optind], output, &wanted);
}
