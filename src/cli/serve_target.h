/* SPDX-License-Identifier: MIT
 * serve_target.h - the process that heapprof serve speaks for: one that runs already, or a command it starts.
 *
 * A command started here writes into a folder of our own, which is removed at the end, unless HEAPPROF_OUT is set. Files
 * that a request brought about are removed once read, so that scraping does not fill a disk; files without a number in their
 * name (no %n in HEAPPROF_OUT: each dump replaces the last) stay.
 */
#ifndef HP_SERVE_TARGET_H
#define HP_SERVE_TARGET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli_error.h"
#include "profile_model.h"

struct hp_serve_target {
  int64_t pid;     /* 0: not started yet */
  bool is_child;   /* we started it */
  bool keep_files; /* leave the dumps where they are */
  int64_t timeout_seconds;
  char *folder; /* our own, or null */
};

/* How this process found its signals. */
struct hp_serve_signals {
  sigset_t mask;
  void (*on_pipe)(int); /* SIGPIPE and SIGCHLD: SIG_DFL or SIG_IGN */
  void (*on_child)(int);
};

/* Sets this process's environment so that a command started from it is profiled; before any thread is made. */
int hp_serve_target_prepare(struct hp_serve_target *target, const char *library, struct hp_error *error);

/* Starts command[0], searched in PATH, with the signals as `found`. 0, or -1 and a sentence. */
int hp_serve_target_start(struct hp_serve_target *target, char **command, const struct hp_serve_signals *found,
                          struct hp_error *error);

/* hp_serve_fetch for serve_answer.h; `context` is the target. */
int hp_serve_target_fetch(void *context, struct hp_profile **out, struct hp_error *error);

/* True while the process is there. Of a child, *out_status becomes what waitpid said when it has ended. */
bool hp_serve_target_runs(struct hp_serve_target *target, int *out_status);

/* Removes the folder. */
void hp_serve_target_free(struct hp_serve_target *target);

#endif
