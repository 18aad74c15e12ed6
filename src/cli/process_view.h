/* SPDX-License-Identifier: MIT
 * process_view.h - what /proc says about another process, as far as asking it for a dump needs.
 */
#ifndef HP_PROCESS_VIEW_H
#define HP_PROCESS_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "cli_error.h"
#include "library_state.h"

struct hp_process {
  int64_t pid;       /* the process, also when asked by the id of one of its threads */
  int64_t inner_pid; /* as the process sees itself (pid namespaces) */
  char state;        /* R, S, D, T (stopped), t (traced), Z (zombie) ... of the main thread */
  int64_t threads;   /* how many it has; of a zombie without any: 1 or less */
  uint64_t caught;   /* signals with a handler, bit n-1 for signal n */
  uint64_t blocked;  /* signals blocked in every thread */
  bool has_library;  /* libheapprof.so is mapped */
  struct hp_library_state state_of_library;
  char *signal_text;     /* HEAPPROF_SIGNAL it was started with, null: unset */
  char *out_text;        /* HEAPPROF_OUT, null: unset */
  char *start_directory; /* PWD it was started with, null: unknown */
  char *directory;       /* current one, as the process names it */
  char *root;            /* put before a path of the process it is a path of ours: "" or living/root */
  char *living;          /* /proc/PID, or /proc/PID/task/TID where the main thread has left and another lives */
};

/* Looks at process (or thread) `pid`. Returns 0, or -1 and one sentence: no such process, not ours to see. The strings are freed by
 * hp_process_free, also after a failure. */
int hp_process_look(int64_t pid, struct hp_process *out, struct hp_error *error);
void hp_process_free(struct hp_process *process);

/* Its state now; 0 if it is gone. */
char hp_process_state(int64_t pid);
/* Is it gone, or nothing but a zombie? One whose main thread alone has left (state Z too) goes on. */
bool hp_process_has_ended(int64_t pid);

#endif
