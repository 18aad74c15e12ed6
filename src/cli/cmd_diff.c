/* SPDX-License-Identifier: MIT
 * cmd_diff.c - heapprof diff: growth between two profiles, as a table or as a profile.
 *
 * The difference is the merge of +1 times the new and -1 times the old profile (merge.h), so stacks meet whatever addresses they
 * ran at. Its standard errors cannot be had from the difference, whose rows have lost how much was added and taken away: they are
 * the root of the sum of squares of the two sides' errors.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "command.h"
#include "frame_filter.h"
#include "merge.h"
#include "name_shorten.h"
#include "profile_reader.h"
#include "profile_writer.h"
#include "report.h"
#include "symbolize.h"
#include "table.h"

static const char help[] =
    "usage: heapprof diff [option]... OLD NEW\n"
    "What grew (+) and shrank (-) from OLD to NEW, by function; - is stdin.\n"
    "\n"
    "  -o, --output=OUT   write the difference as a profile instead of a table\n"
    "  -t, --type=TYPE    column to show; default: the profile's own\n"
    "  -n, --count=N      rows to show, 0: all (default 20)\n"
    "  -l, --lines        by source line instead of by function\n" HP_HELP_STACKS HP_HELP_DEBUG_DIR HP_HELP_WIDE
    "  -j, --json         the same as JSON (docs/json.md)\n"
    "\n"
    "Percentages are of OLD's total. Stacks meet by build id, offset and function, so\n"
    "two runs compare although they ran at different addresses. +- is the standard\n"
    "error: growth below twice that may be chance.";

static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                        {"type", required_argument, NULL, 't'},
                                        HP_OPTIONS_TABLE,
                                        HP_OPTIONS_STACKS,
                                        HP_OPTIONS_END};

struct diff {
  struct hp_report_options report;
  struct hp_symbolize_options symbolize;
  int64_t count;
  const char *output;
  bool json;
  bool wide;
};

/* The two sides may have run at other addresses. */
static int compare_by_name(const void *a, const void *b) {
  const struct hp_report_row *x = *(const struct hp_report_row *const *)a, *y = *(const struct hp_report_row *const *)b;
  int order = strcmp(hp_report_portable_name(x->function), hp_report_portable_name(y->function));
  if (order == 0) order = strcmp(x->file, y->file);
  return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static const struct hp_report_row **rows_by_name(const struct hp_report *report) {
  const struct hp_report_row **rows = hp_alloc(report->row_count * sizeof *rows);
  for (size_t i = 0; i < report->row_count; i++) rows[i] = &report->rows[i];
  if (report->row_count != 0) qsort(rows, report->row_count, sizeof *rows, compare_by_name);
  return rows;
}

/* Adds the squares of one side's errors to the rows of the difference. */
static void add_errors(struct hp_report *growth, const struct hp_report *side) {
  const struct hp_report_row **rows = rows_by_name(side);
  for (size_t i = 0; i < growth->row_count; i++) {
    const struct hp_report_row *key = &growth->rows[i];
    const struct hp_report_row **found = bsearch(&key, rows, side->row_count, sizeof *rows, compare_by_name);
    if (found == NULL) continue;
    growth->rows[i].flat_error += (*found)->flat_error * (*found)->flat_error;
    growth->rows[i].cum_error += (*found)->cum_error * (*found)->cum_error;
  }
  growth->total_error += side->total_error * side->total_error;
  free(rows);
}

static void set_errors(struct hp_report *growth, const struct hp_report *old_side, const struct hp_report *new_side) {
  growth->total_error = 0;
  for (size_t i = 0; i < growth->row_count; i++) growth->rows[i].flat_error = growth->rows[i].cum_error = 0;
  add_errors(growth, old_side);
  add_errors(growth, new_side);
  for (size_t i = 0; i < growth->row_count; i++) {
    growth->rows[i].flat_error = sqrt(growth->rows[i].flat_error);
    growth->rows[i].cum_error = sqrt(growth->rows[i].cum_error);
  }
  growth->total_error = sqrt(growth->total_error);
  growth->has_error = old_side->has_error && new_side->has_error;
}

static int subtract(const struct hp_profile *old_profile, const char *old_name, const struct hp_profile *new_profile,
                    const char *new_name, struct hp_profile **out, struct hp_error *error) {
  struct hp_merge *merge = hp_merge_new();
  /* The new side first: its column types and its program are the difference's. */
  int result = hp_merge_add(merge, new_profile, new_name, 1, error);
  if (result == 0) result = hp_merge_add(merge, old_profile, old_name, -1, error);
  *out = hp_merge_finish(merge);
  if (result != 0) {
    hp_profile_free(*out);
    return result;
  }
  (*out)->time_nanos = new_profile->time_nanos;
  (*out)->duration_nanos = 0;
  if (old_profile->time_nanos > 0 && new_profile->time_nanos > old_profile->time_nanos)
    (*out)->duration_nanos = new_profile->time_nanos - old_profile->time_nanos;
  return 0;
}

/* The three reports, the table. One column in all three: the new side's default if none was asked for. */
static int show(const struct diff *diff, const struct hp_profile *const profiles[3], char *const *names) {
  struct hp_report reports[3];
  struct hp_report_options wanted = diff->report;
  struct hp_error error;
  if (wanted.type == NULL)
    wanted.type = hp_profile_text(profiles[1], profiles[1]->types[hp_profile_type_find(profiles[1], NULL)].type);
  for (int i = 0; i < 3; i++) {
    if (hp_report_build(profiles[i], &wanted, &reports[i], &error) == 0) continue;
    while (i-- > 0) hp_report_free(&reports[i]);
    return hp_fail(&error);
  }
  set_errors(&reports[2], &reports[0], &reports[1]);
  struct hp_table table = {.profile = profiles[2],
                           .report = &reports[2],
                           .row_count_max = (size_t)diff->count,
                           .by_line = diff->report.by_line,
                           .terminal_width = diff->wide ? 0 : hp_terminal_width(stdout),
                           .is_diff = true,
                           .old_name = names[0],
                           .new_name = names[1],
                           .old_total = reports[0].shown_total,
                           .new_total = reports[1].shown_total};
  if (diff->json)
    hp_table_json(stdout, "diff", &table);
  else
    hp_table_print(stdout, &table);
  for (int i = 0; i < 3; i++) hp_report_free(&reports[i]);
  return 0;
}

static int run(const struct diff *diff, char *const *names) {
  struct hp_error error;
  struct hp_profile *sides[2] = {NULL, NULL}, *growth;
  int status = 0;
  for (int i = 0; i < 2 && status == 0; i++)
    if (hp_profile_read(names[i], &sides[i], &error) != 0) status = hp_fail(&error);
  if (status == 0 && diff->output == NULL) {
    for (int i = 0; i < 2; i++) {
      hp_symbolize_for_report(sides[i], &diff->symbolize, diff->report.by_line);
      hp_profile_drop_frames(sides[i]);
    }
  }
  if (status == 0 && subtract(sides[0], names[0], sides[1], names[1], &growth, &error) != 0) status = hp_fail(&error);
  if (status == 0) {
    const struct hp_profile *const profiles[3] = {sides[0], sides[1], growth};
    if (diff->output == NULL) {
      status = show(diff, profiles, names);
    } else {
      hp_profile_mark_difference(growth, false);
      if (hp_profile_write(diff->output, growth, &error) != 0) status = hp_fail(&error);
    }
    hp_profile_free(growth);
  }
  hp_profile_free(sides[0]);
  hp_profile_free(sides[1]);
  return status;
}

int hp_cmd_diff(int argc, char **argv) {
  struct diff diff = {.count = 20};
  int option, status;
  while ((option = getopt_long(argc, argv, ":o:t:n:lf:i:d:wjh", options, NULL)) != -1) {
    switch (option) {
      case 'o': diff.output = optarg; break;
      case 't': diff.report.type = optarg; break;
      case 'n':
        if ((status = hp_option_count("diff", optarg, &diff.count)) != 0) return status;
        break;
      case 'l': diff.report.by_line = true; break;
      case 'f': diff.report.focus = optarg; break;
      case 'i': diff.report.ignore = optarg; break;
      case 'd': diff.symbolize.debug_dirs = optarg; break;
      case 'w': diff.wide = true; break;
      case 'j': diff.json = true; break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("diff", argv, option);
    }
  }
  if (argc - optind != 2) return hp_usage("diff", "two profiles are needed");
  if (strcmp(argv[optind], "-") == 0 && strcmp(argv[optind + 1], "-") == 0)
    return hp_usage("diff", "standard input can be one of the two only");
  return run(&diff, argv + optind);
}
