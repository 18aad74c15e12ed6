/* SPDX-License-Identifier: MIT
 * cmd_view.c - heapprof view: one HTML page of a profile, of two compared, or of a series.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_memory.h"
#include "command.h"
#include "frame_filter.h"
#include "output_file.h"
#include "path_clean.h"
#include "profile_reader.h"
#include "symbolize.h"
#include "trend_print.h"
#include "trend_series.h"
#include "view_data.h"
#include "view_html.h"

static const char help[] =
    "usage: heapprof view [option]... FILE\n"
    "       heapprof view [option]... OLD NEW\n"
    "       heapprof view [option]... --trend FILE...\n"
    "Writes one HTML page with flame graph, table and search. It needs no network, no\n"
    "server: open it in a browser (2023 or later), send it, keep it.\n"
    "\n"
    "  -o, --output=PAGE  the file to write; default: standard output\n"
    "  -t, --type=TYPE    sample type shown first (inuse_space, alloc_objects, ...)\n"
    "  -l, --lines        a box or row for each source line, not each function\n" HP_HELP_STACKS
    "  -T, --trend        also a chart for each growing stack; shows the last of at\n"
    "                     least three dumps, coloured by change since the first\n"
    "  -a, --all-processes  with --trend: files of several are one series\n" HP_HELP_DEBUG_DIR
    "\n"
    "Two files are compared: red grew, blue shrank, grey is within sampling error.\n"
    "In the page, ? lists the keys.";

static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                        {"type", required_argument, NULL, 't'},
                                        {"trend", no_argument, NULL, 'T'},
                                        {"all-processes", no_argument, NULL, 'a'},
                                        HP_OPTIONS_STACKS,
                                        HP_OPTIONS_END};

struct view {
  const char *output; /* null or "-": stdout */
  const char *debug_dirs;
  bool by_line, is_trend, all_processes;
  struct hp_view_input input;
};

/* What the page calls a file. */
static const char *shown_name(const char *path) {
  return strcmp(path, "-") == 0 ? "standard input" : hp_path_base_name(path);
}

static struct hp_profile *load(const struct view *view, const char *path, struct hp_error *error) {
  struct hp_profile *profile;
  if (hp_profile_read(path, &profile, error) != 0) return NULL;
  struct hp_symbolize_options symbolize = {.debug_dirs = view->debug_dirs};
  hp_symbolize_for_report(profile, &symbolize, view->by_line);
  hp_profile_drop_frames(profile);
  return profile;
}

/* Written whole or not at all: a browser that reloads never sees half of it. */
static int write_page(const struct view *view, const char *title, const char *data, size_t data_bytes,
                      struct hp_error *error) {
  if (view->output == NULL) return hp_view_html_write(stdout, title, data, data_bytes, error);
  struct hp_output_file output;
  if (hp_output_file_open(&output, view->output, error) != 0) return -1;
  errno = 0;
  int fd = dup(output.fd);
  FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
  bool failed = out == NULL || hp_view_html_write(out, title, data, data_bytes, error) != 0 || ferror(out) != 0;
  if (out != NULL && fclose(out) != 0) failed = true;
  int failed_errno = !failed ? 0 : errno != 0 ? errno : EIO;
  return hp_output_file_finish(&output, failed_errno, error);
}

static int write_view(struct view *view, struct hp_error *error) {
  char *data = NULL;
  size_t data_bytes = 0;
  FILE *memory = open_memstream(&data, &data_bytes);
  if (memory == NULL) return hp_error_set(error, "out of memory");
  int result = hp_view_data_write(memory, &view->input, error);
  if (fclose(memory) != 0 && result == 0) result = hp_error_set(error, "out of memory");
  if (result == 0) {
    char *title = hp_format("%s - heapprof", view->input.name);
    result = write_page(view, title, data, data_bytes, error);
    free(title);
  }
  free(data);
  return result;
}

/* Shows `last` compared with `first` (or null). */
static int show(struct view *view, const char *first, const char *last, struct hp_error *error) {
  int result = -1;
  struct hp_profile *base = NULL, *profile = NULL;
  if (first != NULL && (base = load(view, first, error)) == NULL) return -1;
  if ((profile = load(view, last, error)) != NULL) {
    view->input.profile = profile;
    view->input.base = base;
    view->input.name = shown_name(last);
    view->input.base_name = first != NULL ? shown_name(first) : NULL;
    result = write_view(view, error);
  }
  hp_profile_free(profile);
  hp_profile_free(base);
  return result;
}

static int show_trend(struct view *view, char *const *paths, size_t count, struct hp_error *error) {
  struct hp_trend trend;
  struct hp_trend_options trend_options = {view->input.focus, view->input.ignore, view->debug_dirs, view->all_processes};
  if (hp_trend_build(paths, count, &trend_options, view->input.frames, &trend, error) != 0) return -1;
  hp_trend_note_peaks(&trend);
  if (!view->all_processes) hp_trend_note_processes(&trend);
  hp_trend_note_left_out(&trend);
  view->input.trend = &trend;
  int result = show(view, trend.dumps[0].path, trend.dumps[trend.dump_count - 1].path, error);
  hp_trend_free(&trend);
  return result;
}

int hp_cmd_view(int argc, char **argv) {
  struct view view = {0};
  int option;
  while ((option = getopt_long(argc, argv, ":o:t:lf:i:Tad:h", options, NULL)) != -1) {
    switch (option) {
      case 'o': view.output = optarg; break;
      case 't': view.input.type = optarg; break;
      case 'l': view.by_line = true; break;
      case 'f': view.input.focus = optarg; break;
      case 'i': view.input.ignore = optarg; break;
      case 'T': view.is_trend = true; break;
      case 'a': view.all_processes = true; break;
      case 'd': view.debug_dirs = optarg; break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("view", argv, option);
    }
  }
  size_t count = (size_t)(argc - optind);
  char **paths = argv + optind;
  if (count == 0) return hp_usage("view", "a profile is missing");
  if (!view.is_trend && count > 2) return hp_usage("view", "more than two profiles need --trend");
  if (view.is_trend && count < HP_TREND_DUMPS_MIN)
    return hp_usage("view", "--trend needs at least %d profiles", HP_TREND_DUMPS_MIN);
  if (view.output == NULL && isatty(STDOUT_FILENO))
    return hp_usage("view", "a page is not for the terminal: name a file with -o");
  struct hp_view_frames frames;
  struct hp_error error;
  hp_view_frames_init(&frames, view.by_line);
  view.input.frames = &frames;
  int result = view.is_trend ? show_trend(&view, paths, count, &error)
                             : show(&view, count == 2 ? paths[0] : NULL, paths[count - 1], &error);
  hp_view_frames_free(&frames);
  return result == 0 ? 0 : hp_fail(&error);
}
