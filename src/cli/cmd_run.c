/* SPDX-License-Identifier: MIT
 * cmd_run.c - heapprof run: a command with the library preloaded, then what it wrote. Running it is child_run.c's.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child_run.h"
#include "cli_memory.h"
#include "command.h"
#include "frame_filter.h"
#include "library_find.h"
#include "name_shorten.h"
#include "out_template.h"
#include "profile_reader.h"
#include "report.h"
#include "symbolize.h"
#include "table.h"

enum { ROWS_SHOWN = 10, PATHS_SHOWN_MAX = 20 };

static const char help[] =
    "usage: heapprof run [option]... [--] COMMAND [argument]...\n"
    "Profiles COMMAND, then prints where the profiles are and the top of the last.\n"
    "\n"
    "  -o, --out=TEMPLATE   where: %p pid, %n dump, %e program, %h host, %t time\n"
    "      --sample-rate=N  mean bytes between samples (512k); 1: every allocation\n"
    "      --period=S       seconds between dumps (60), 0: none;  --keep=N of them\n"
    "      --signal=NAME    asks for a dump (USR2)    --exit-dump=0|1  one at the end\n"
    "      --kind=LIST      full, heap, alloc, delta  --peak=0|1  the highest point\n"
    "      --growth=BYTES   dump when in-use memory has grown by so much\n"
    "      --max-depth=N    frames kept (128)         --max-memory=N  own ceiling\n"
    "      --labels=LIST    size, age, thread         --symbols=0|1  names in it\n"
    "      --children=0|1   profile children too (1)\n"
    "      --log=LEVEL      off, error, warn, info, debug    --log-file=FILE\n"
    "      --library=FILE   libheapprof.so, if it is not beside heapprof\n"
    "  -q, --quiet          print nothing afterwards\n"
    "\n"
    "Each option sets the variable HEAPPROF_... of its name: libheapprof(7). The exit\n"
    "status is COMMAND's; 128 + n if signal n ended it.";

/* Options that are nothing but a variable; their getopt value is the index here plus VARIABLE_FIRST. */
static const char *const variables[][2] = {
    {"sample-rate", "HEAPPROF_SAMPLE_RATE"},
    {"signal", "HEAPPROF_SIGNAL"},
    {"period", "HEAPPROF_PERIOD"},
    {"keep", "HEAPPROF_KEEP"},
    {"exit-dump", "HEAPPROF_EXIT_DUMP"},
    {"kind", "HEAPPROF_KIND"},
    {"peak", "HEAPPROF_PEAK"},
    {"growth", "HEAPPROF_GROWTH"},
    {"max-depth", "HEAPPROF_MAX_DEPTH"},
    {"max-memory", "HEAPPROF_MAX_MEMORY"},
    {"labels", "HEAPPROF_LABELS"},
    {"symbols", "HEAPPROF_SYMBOLS"},
    {"children", "HEAPPROF_CHILDREN"},
    {"log", "HEAPPROF_LOG"},
    {"log-file", "HEAPPROF_LOG_FILE"},
};

enum { VARIABLE_COUNT = sizeof variables / sizeof variables[0], VARIABLE_FIRST = 1000 };

struct run {
  const char *library; /* --library, or null */
  bool quiet;
};

static void fill_options(struct option options[VARIABLE_COUNT + 5]) {
  size_t i = 0;
  for (; i < VARIABLE_COUNT; i++)
    options[i] = (struct option){variables[i][0], required_argument, NULL, VARIABLE_FIRST + (int)i};
  options[i++] = (struct option){"out", required_argument, NULL, 'o'};
  options[i++] = (struct option){"library", required_argument, NULL, 'L'};
  options[i++] = (struct option){"quiet", no_argument, NULL, 'q'};
  options[i++] = (struct option){"help", no_argument, NULL, 'h'};
  options[i] = (struct option){NULL, 0, NULL, 0};
}

/* The template made absolute, so that a child in another folder writes where the command will look. */
static int set_output(char **out_template, struct hp_error *error) {
  char *here = getcwd(NULL, 0);
  if (here == NULL) return hp_error_set(error, "cannot tell the current folder: %s", strerror(errno));
  *out_template = hp_out_template_absolute(getenv("HEAPPROF_OUT"), here);
  setenv("HEAPPROF_OUT", *out_template, 1);
  free(here);
  return 0;
}

static int set_preload(const char *library, struct hp_error *error) {
  if (strpbrk(library, " :") != NULL)
    return hp_error_set(error, "%s cannot be preloaded: the loader takes spaces and colons in LD_PRELOAD for separators",
                        library);
  const char *others = getenv("LD_PRELOAD");
  bool has_others = others != NULL && others[0] != '\0';
  char *value = hp_format("%s%s%s", library, has_others ? ":" : "", has_others ? others : "");
  setenv("LD_PRELOAD", value, 1);
  free(value);
  return 0;
}

static int compare_files(const void *a, const void *b) {
  const struct hp_out_file *x = *(const struct hp_out_file *const *)a, *y = *(const struct hp_out_file *const *)b;
  const struct timespec *s = &x->status.st_mtim, *t = &y->status.st_mtim;
  if (s->tv_sec != t->tv_sec) return s->tv_sec < t->tv_sec ? -1 : 1;
  if (s->tv_nsec != t->tv_nsec) return s->tv_nsec < t->tv_nsec ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static void show_top(const char *path) {
  struct hp_error error;
  struct hp_profile *profile;
  if (hp_profile_read(path, &profile, &error) != 0) {
    hp_note("%s", error.text);
    return;
  }
  struct hp_report report;
  struct hp_report_options options = {.first_rows = ROWS_SHOWN};
  struct hp_symbolize_options symbolize = {0};
  hp_symbolize_for_report(profile, &symbolize, false);
  hp_profile_drop_frames(profile);
  int status = hp_report_build(profile, &options, &report, &error);
  if (status == 0 && report.total == 0) { /* a program that freed all it had: then what it allocated */
    hp_report_free(&report);
    options.type = "alloc_space";
    status = hp_report_build(profile, &options, &report, &error);
    if (status == 0 && report.total != 0) hp_note("nothing was in use at the end; shown: allocated. " HP_HINT_WHILE_IT_RUNS);
  }
  if (status == 0) {
    hp_table_print(stderr, &(struct hp_table){.profile = profile,
                                              .report = &report,
                                              .row_count_max = ROWS_SHOWN,
                                              .terminal_width = hp_terminal_width(stderr)});
    hp_report_free(&report);
  } else {
    hp_note("%s", error.text);
  }
  hp_profile_free(profile);
}

/* Is `file`, which is not older, to be shown rather than `shown`? The last one of process `pid`; of any if the names do not tell, or if
 * it left none (a script's shell ends by _exit); a file of the peak, which is written after the dump that it is beside, only for want of
 * another. */
static bool is_shown_rather(const struct hp_out_file *file, const struct hp_out_file *shown, int64_t pid) {
  if (shown == NULL) return true;
  bool is_ours = file->pid == pid || file->pid < 0, was_ours = shown->pid == pid || shown->pid < 0;
  if (is_ours != was_ours) return is_ours;
  return !hp_out_is_peak(file->path) || hp_out_is_peak(shown->path);
}

/* What is new since `before`, oldest first, and the top of the last. */
static void show_results(const struct hp_out_list *before, const char *template, int64_t pid) {
  struct hp_out_list after = {0};
  hp_out_template_list("", template, 0, &after);
  const struct hp_out_file **fresh = hp_alloc(after.count * sizeof *fresh);
  size_t count = 0;
  for (size_t i = 0; i < after.count; i++)
    if (!hp_out_list_has(before, &after.files[i])) fresh[count++] = &after.files[i];
  if (count != 0) qsort(fresh, count, sizeof *fresh, compare_files);
  const struct hp_out_file *last = NULL;
  for (size_t i = 0; i < count; i++) {
    if (i < PATHS_SHOWN_MAX) hp_note("profile %s", fresh[i]->path);
    if (is_shown_rather(fresh[i], last, pid)) last = fresh[i];
  }
  if (count > PATHS_SHOWN_MAX) hp_note("... and %zu more", count - PATHS_SHOWN_MAX);
  if (count == 0)
    hp_note(
        "no profile was written (did the command allocate too little to be sampled, or end by a signal or _exit, or is it "
        "linked statically or set-user-id?)");
  else
    show_top(last->path);
  free(fresh);
  hp_out_list_free(&after);
}

static int run_command(const struct run *run, char **command) {
  struct hp_error error;
  char *library = hp_library_find(run->library, &error), *template = NULL;
  if (library == NULL) return hp_fail(&error);
  int status = 1;
  if (set_output(&template, &error) != 0 || set_preload(library, &error) != 0) {
    hp_fail(&error);
  } else {
    struct hp_out_list before = {0};
    hp_out_template_list("", template, 0, &before);
    pid_t pid;
    status = hp_child_run(command, &pid, &error);
    if (status < 0)
      status = hp_fail(&error);
    else if (!run->quiet)
      show_results(&before, template, pid);
    hp_out_list_free(&before);
  }
  free(template);
  free(library);
  return status;
}

int hp_cmd_run(int argc, char **argv) {
  struct run run = {0};
  struct option options[VARIABLE_COUNT + 5];
  fill_options(options);
  int option;
  while ((option = getopt_long(argc, argv, "+:o:qh", options, NULL)) != -1) {
    if (option >= VARIABLE_FIRST) {
      setenv(variables[option - VARIABLE_FIRST][1], optarg, 1);
      continue;
    }
    switch (option) {
      case 'o': setenv("HEAPPROF_OUT", optarg, 1); break;
      case 'L': run.library = optarg; break;
      case 'q': run.quiet = true; break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("run", argv, option);
    }
  }
  if (optind == argc) return hp_usage("run", "a command is missing");
  return run_command(&run, argv + optind);
}
