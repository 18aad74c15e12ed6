/* SPDX-License-Identifier: MIT
 * cmd_top.c - heapprof top: the table of what holds memory. The printing is table.c's, the sums report.c's.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "frame_filter.h"
#include "merge.h"
#include "name_shorten.h"
#include "report.h"
#include "symbolize.h"
#include "table.h"

static const char help[] =
    "usage: heapprof top [option]... FILE...\n"
    "What holds or allocates most, by function. Several files are summed; - is stdin.\n"
    "\n"
    "  -t, --type=TYPE    column to show (inuse_space, alloc_objects, ...);\n"
    "                     default: the profile's own\n"
    "  -n, --count=N      rows to show, 0: all (default 20)\n"
    "  -l, --lines        by source line instead of by function\n"
    "  -T, --tree         each row with its callers above and its callees below\n" HP_HELP_STACKS HP_HELP_DEBUG_DIR
        HP_HELP_WIDE
    "  -j, --json         the same as JSON (docs/json.md)\n"
    "\n"
    "flat is what a function itself allocated, cum what it and all it called did;\n"
    "+- is the standard error that sampling leaves: the truth is within twice that\n"
    "in 19 rows of 20. sum% adds up flat%. A profile without names is symbolized on\n"
    "the way, from the binaries on this machine.";

static const struct option options[] = {{"type", required_argument, NULL, 't'},
                                        {"tree", no_argument, NULL, 'T'},
                                        HP_OPTIONS_TABLE,
                                        HP_OPTIONS_STACKS,
                                        HP_OPTIONS_END};

struct top {
  struct hp_report_options report;
  struct hp_symbolize_options symbolize;
  int64_t count;
  bool json;
  bool wide;
};

static bool has_any(const struct hp_profile *profile, uint32_t type) {
  for (size_t i = 0; i < profile->sample_count; i++)
    if (hp_profile_value(profile, i, type) != 0) return true;
  return false;
}

/* A table without rows looks like a fault: says why, and what else there is to see. */
static void note_empty(const struct hp_profile *profile, const struct hp_report *report, bool is_filtered) {
  if (is_filtered && report->total != 0 && report->shown_total == 0 && report->nonzero_count == 0)
    hp_note("--focus and --ignore leave no stack");
  if (report->total != 0) return;
  uint32_t allocated = hp_profile_type_find(profile, "alloc_space");
  if (strncmp(report->type_name, "inuse_", strlen("inuse_")) != 0)
    hp_note("the profile has nothing of %s", report->type_name);
  else if (allocated != HP_NONE && has_any(profile, allocated))
    hp_note("nothing is in use in this profile; what was allocated: -t alloc_space. " HP_HINT_WHILE_IT_RUNS);
  else
    hp_note("nothing is in use in this profile. " HP_HINT_WHILE_IT_RUNS);
}

static int show(const struct top *top, char *const *paths, size_t path_count) {
  struct hp_error error;
  struct hp_profile *profile;
  struct hp_origins origins = {0};
  int status = hp_merge_files(paths, path_count, &origins, &profile, &error);
  if (status == 0) hp_origins_note_sum(&origins);
  hp_origins_free(&origins);
  if (status != 0) return hp_fail(&error);
  struct hp_report report;
  hp_symbolize_for_report(profile, &top->symbolize, top->report.by_line);
  hp_profile_drop_frames(profile);
  if (hp_report_build(profile, &top->report, &report, &error) != 0) {
    status = hp_fail(&error);
  } else {
    struct hp_table table = {.profile = profile,
                             .report = &report,
                             .row_count_max = (size_t)top->count,
                             .by_line = top->report.by_line,
                             .tree = top->report.edges,
                             .terminal_width = top->wide ? 0 : hp_terminal_width(stdout)};
    if (top->json) {
      hp_table_json(stdout, "top", &table);
    } else {
      hp_table_print(stdout, &table);
      note_empty(profile, &report, top->report.focus != NULL || top->report.ignore != NULL);
    }
    hp_report_free(&report);
  }
  hp_profile_free(profile);
  return status;
}

int hp_cmd_top(int argc, char **argv) {
  struct top top = {.count = 20};
  int option, status;
  while ((option = getopt_long(argc, argv, ":t:n:lTf:i:d:wjh", options, NULL)) != -1) {
    switch (option) {
      case 't': top.report.type = optarg; break;
      case 'n':
        if ((status = hp_option_count("top", optarg, &top.count)) != 0) return status;
        break;
      case 'l': top.report.by_line = true; break;
      case 'T': top.report.edges = true; break;
      case 'f': top.report.focus = optarg; break;
      case 'i': top.report.ignore = optarg; break;
      case 'd': top.symbolize.debug_dirs = optarg; break;
      case 'w': top.wide = true; break;
      case 'j': top.json = true; break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("top", argv, option);
    }
  }
  if (optind == argc) return hp_usage("top", "a profile is missing");
  if (!top.report.edges) top.report.first_rows = (size_t)top.count;
  return show(&top, argv + optind, (size_t)(argc - optind));
}
