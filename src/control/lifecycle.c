/* SPDX-License-Identifier: MIT
 * lifecycle.c - start-up and the end of the process. (No header: the loader calls it.)
 *
 * Start-up, in the library's constructor, while the process has one thread: find the allocator behind us, see whether we are
 * in the way of its calls at all, read the configuration, register the fork handlers and the signal, set the rate. Until the
 * last step nothing is sampled. No file is opened, no thread started, nothing mapped: tables come with the first sample.
 * The end: a last dump in the library's destructor, that is after main's exit handlers. Nothing is torn down: destructors
 * and threads that run on still allocate and free. */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "allocator_stats.h"
#include "budget.h"
#include "call_filter.h"
#include "fork.h"
#include "format.h"
#include "helper.h"
#include "hot.h"
#include "libc_names.h"
#include "log.h"
#include "next_malloc.h"
#include "path_template.h"
#include "peak_tracker.h"
#include "process.h"
#include "publish.h"
#include "recorder.h"
#include "sampled_path.h"
#include "sampler.h"
#include "sys.h"
#include "thread_hooks.h"
#include "thread_state.h"
#include "trigger.h"
#include "unwinder.h"

/* ThreadSanitizer's shared runtime, if the program has it: it would see our threads' calls of libc, but not our locks. */
extern void __tsan_init(void) __attribute__((weak));

/* ---- does the process call us? ---- */

/* libc allocates by the same names as everybody: if its strdup does not come through our malloc, the executable (or a
 * library before us) has an allocator of its own. */
static bool is_interposed(void) {
  enum { PROBE_LEFT = 1 << 20 };
  hp_thread.bytes_left = PROBE_LEFT;
  hp_thread.rate_epoch = hp_load_relaxed(&hp_hot.rate_epoch);
  char *(*volatile duplicate)(const char *) = strdup; /* clang knows strdup, and that it changes no variable of ours */
  char *volatile copy = duplicate("heapprof");
  bool seen = hp_thread.bytes_left != PROBE_LEFT;
  free(copy); /* by name: whoever made it gets it back */
  hp_sampler_forget_gap();
  return seen;
}

/* ---- HEAPPROF_CHILDREN=0 ---- */
enum { ENVIRONMENT_MAX = 4096 };
static const char owner_name[] = "HEAPPROF_OWNER";

/* Exec'd children inherit the variables. The first profiled process marks its environment with its pid; one that finds the
 * mark of another is a child. An exec in the same process (nice, env, sh -c exec) keeps its pid and stays profiled. */
static bool is_unwanted_child(void) {
  static char mark[32];
  static char *marked[ENVIRONMENT_MAX];
  const char *owner = hp_config_find(environ, owner_name);
  struct hp_text text;
  hp_text_init(&text, mark, sizeof mark);
  hp_text_add(&text, "%s=%d", owner_name, hp_process.pid);
  if (owner != NULL) return strcmp(owner, mark + sizeof owner_name) != 0;
  size_t n = 0;
  while (environ != NULL && environ[n] != NULL) n++;
  if (n + 2 > ENVIRONMENT_MAX) return false;
  if (n != 0) memcpy(marked, environ, n * sizeof marked[0]);
  marked[n] = mark;
  environ = marked;
  return false;
}

/* ---- configuration ---- */
static struct { const char *variable, *value, *text; } complaints[32];
static size_t complaint_count;

static void complain(const char *variable, const char *value, const char *text) {
  if (complaint_count == HP_ARRAY_LENGTH(complaints)) return;
  complaints[complaint_count].variable = variable;
  complaints[complaint_count].value = value;
  complaints[complaint_count].text = text;
  complaint_count++;
}

static void set_up_log(void) {
  static char path[HP_PROCESS_PATH_MAX];
  const struct hp_config *c = &hp_process.config;
  if (c->log_file != NULL) {
    const struct hp_path_facts facts = {.directory = hp_process.directory,
                                        .executable = hp_process_executable_name(),
                                        .pid = hp_process.pid,
                                        .unix_seconds = hp_process.start.wall_nanos / 1000000000};
    hp_log_configure(c->log_level, hp_path_expand(c->log_file, &facts, NULL, path, sizeof path) == 0 ? path : NULL);
  } else {
    hp_log_configure(c->log_level, NULL);
  }
  for (size_t i = 0; i < complaint_count; i++) {
    enum { SHOWN = 60 };
    bool is_long = strlen(complaints[i].value) > SHOWN;
    hp_log(HP_LOG_WARN, "%s=%.*s%s %s", complaints[i].variable, SHOWN, complaints[i].value, is_long ? "..." : "",
           complaints[i].text);
  }
}

static void check_settings(void) {
  const struct hp_config *c = &hp_process.config;
  char escape;
  if (hp_path_has_unknown_escape(c->out_template, &escape)) {
    hp_log(HP_LOG_WARN, "HEAPPROF_OUT: %%%c is no placeholder (%%p %%n %%e %%h %%t %%%%), it is kept as it is", escape);
  }
  if (c->sample_rate_bytes == 0) {
    hp_log(HP_LOG_WARN, "HEAPPROF_SAMPLE_RATE=0: nothing is sampled until the program calls heapprof_start()");
  }
}

static void apply_settings(void) {
  const struct hp_config *c = &hp_process.config;
  hp_memory_set_ceiling(c->max_memory_bytes);
  hp_sampled_set_max_depth(c->max_depth);
  hp_recorder_set_labels(c->labels);
  hp_sampled_follow_modules();
  if (c->peak) hp_peak_tracker_enable();
}

static void stay_out(const char *why) {
  hp_process.is_inert = true;
  hp_log(HP_LOG_WARN, "%s %s; it is not profiled", hp_process_executable_name(), why);
}

static void start(void) {
  hp_config_read(&hp_process.config, environ, complain);
  hp_process_look();
  if (!hp_process.config.children && is_unwanted_child()) {
    hp_process.is_inert = true;
    return;
  }
  set_up_log();
  if (!hp_libc_is_glibc()) {
    stay_out("runs with another C library than glibc");
    return;
  }
  if (&__tsan_init != NULL) {
    stay_out("runs under ThreadSanitizer, which would take our locks for races");
    return;
  }
  if (!is_interposed()) {
    stay_out("has an allocator of its own that cannot be intercepted");
    return;
  }
  check_settings();
  apply_settings();
  hp_allocator_stats_init();
  hp_fork_start();
  hp_call_filter_start();
  hp_trigger_start();
  hp_publish();
  hp_sampled_epilogue = hp_trigger_section_end;
  hp_hook_before_thread = hp_helper_start;
  hp_hook_main_leaves = hp_helper_main_leaves;
  hp_hook_cancel = hp_helper_cancelled;
  hp_hook_no_room = hp_helper_end;
  hp_helper_note_main();
  hp_sampler_set_rate(hp_process.config.sample_rate_bytes);
}

__attribute__((constructor)) static void heapprof_constructor(void) {
  hp_section_enter();
  hp_next_resolve_all();
  if (getauxval(AT_SECURE) != 0) {
    hp_process.is_inert = true;
  } else {
    hp_log_init();
    start();
  }
  if (hp_process.is_inert) hp_sampler_set_rate(0);
  hp_section_leave();
  if (hp_thread.dump_wanted != 0) { /* a signal in the first microseconds */
    hp_thread.dump_wanted = 0;
    hp_trigger_serve();
  }
}

/* A process that never sampled (rate 0) leaves no file, unless somebody named one. */
__attribute__((destructor)) static void heapprof_destructor(void) {
  const struct hp_config *c = &hp_process.config;
  if (!hp_process.is_inert) hp_trigger_exit(c->exit_dump && (hp_sampler_was_on() || c->out_is_chosen));
}
