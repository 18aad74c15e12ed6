/* SPDX-License-Identifier: MIT
 * cmd_trend.c - heapprof trend: which stacks grow over a series of dumps. The fit is trend_fit.c's, the series
 * trend_series.c's.
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "name_shorten.h"
#include "trend_print.h"
#include "trend_series.h"

static const char help[] =
    "usage: heapprof trend [option]... FILE...\n"
    "Which stacks hold more and more memory, over at least three dumps (better: 20)\n"
    "taken one after the other; they are put in order of their time.\n"
    "\n"
    "  -n, --count=N      stacks to show, 0: all (default 20); suspects always\n"
    "  -s, --stacks       every frame of a stack, not only the first four\n"
    "  -l, --lines        with file and line\n"
    "  -a, --all-processes  files of several processes are one series; else those of\n"
    "                     the process with the most files are taken\n" HP_HELP_STACKS HP_HELP_DEBUG_DIR HP_HELP_WIDE
    "  -j, --json         the same as JSON (docs/json-trend.md)\n"
    "\n"
    "slope is bytes an hour by least squares +- its standard error; p the chance that\n"
    "any stack without growth looks like this. LEAK? marks p < 0.001 with growth that\n"
    "goes on; a cache that has filled \"levels off\". A page with a chart for each\n"
    "stack: heapprof view --trend FILE...";

static const struct option options[] = {{"stacks", no_argument, NULL, 's'},
                                        {"all-processes", no_argument, NULL, 'a'},
                                        HP_OPTIONS_TABLE,
                                        HP_OPTIONS_STACKS,
                                        HP_OPTIONS_END};

int hp_cmd_trend(int argc, char **argv) {
  struct hp_trend_options trend_options = {0};
  int64_t count = 20;
  bool by_line = false, as_json = false, whole = false, wide = false;
  int option, status = 0;
  while ((option = getopt_long(argc, argv, ":n:slaf:i:d:wjh", options, NULL)) != -1) {
    switch (option) {
      case 'n':
        if ((status = hp_option_count("trend", optarg, &count)) != 0) return status;
        break;
      case 's': whole = true; break;
      case 'a': trend_options.all_processes = true; break;
      case 'l': by_line = true; break;
      case 'f': trend_options.focus = optarg; break;
      case 'i': trend_options.ignore = optarg; break;
      case 'd': trend_options.debug_dirs = optarg; break;
      case 'w': wide = true; break;
      case 'j': as_json = true; break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("trend", argv, option);
    }
  }
  if (argc - optind < HP_TREND_DUMPS_MIN) return hp_usage("trend", "at least %d profiles are needed", HP_TREND_DUMPS_MIN);
  struct hp_view_frames frames;
  struct hp_trend trend;
  struct hp_error error;
  hp_view_frames_init(&frames, by_line);
  if (hp_trend_build(argv + optind, (size_t)(argc - optind), &trend_options, &frames, &trend, &error) != 0) {
    status = hp_fail(&error);
  } else {
    hp_trend_note_peaks(&trend);
    if (!trend_options.all_processes) hp_trend_note_processes(&trend);
    if (as_json)
      hp_trend_print_json(stdout, &trend, &frames, (size_t)count);
    else
      hp_trend_print(stdout, &trend, &frames,
                     &(struct hp_trend_look){(size_t)count, whole, wide ? 0 : hp_terminal_width(stdout)});
    hp_trend_free(&trend);
  }
  hp_view_frames_free(&frames);
  return status;
}
