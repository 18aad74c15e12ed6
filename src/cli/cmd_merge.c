/* SPDX-License-Identifier: MIT
 * cmd_merge.c - heapprof merge: the sum of profiles, of many processes or of a fleet (the work is merge.c's).
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "merge.h"
#include "profile_writer.h"

static const char help[] =
    "usage: heapprof merge FILE... -o OUT\n"
    "Sums profiles, one at a time, into one that any pprof reader takes.\n"
    "\n"
    "  -o, --output=OUT   the profile to write; - is standard output\n"
    "\n"
    "Stacks meet by build id, offset in the file and function, so profiles of several\n"
    "runs and machines add up whatever addresses they ran at. The first file says\n"
    "which sample types the sum has; the others must have them too. The time is the\n"
    "latest one's, the duration the sum; comments stay if all files have them.";

static const struct option options[] = {
    {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

int hp_cmd_merge(int argc, char **argv) {
  const char *output = NULL;
  int option;
  while ((option = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
    switch (option) {
      case 'o': output = optarg; break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("merge", argv, option);
    }
  }
  if (optind == argc) return hp_usage("merge", "a profile is missing");
  if (output == NULL) return hp_usage("merge", "-o OUT is missing");
  struct hp_error error;
  struct hp_profile *sum;
  struct hp_origins origins = {0};
  int result = hp_merge_files(argv + optind, (size_t)(argc - optind), &origins, &sum, &error);
  if (result == 0) hp_origins_note_sum(&origins);
  hp_origins_free(&origins);
  if (result != 0) return hp_fail(&error);
  result = hp_profile_write(output, sum, &error);
  hp_profile_free(sum);
  return result == 0 ? 0 : hp_fail(&error);
}
