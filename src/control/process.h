/* SPDX-License-Identifier: MIT
 * process.h - what was true of the process when it started, kept because it may change: its directory (daemons chdir), its
 * executable (may be deleted), its clock. Written at start-up, the pid again in a forked child, alloc_start by a reset under
 * the dump lock; read by anybody. */
#ifndef HP_PROCESS_H
#define HP_PROCESS_H

#include "config.h"
#include "moment.h"

enum { HP_PROCESS_PATH_MAX = 4096 };

struct hp_process {
  struct hp_config config;
  const char *directory; /* absolute; NULL: unknown */
  int pid;               /* of this process, also in a forked child */
  struct hp_moment start;
  struct hp_moment alloc_start; /* when the alloc columns began to count: the start, or the last reset */
  bool is_inert;                /* nothing is sampled, nothing is written */
};
extern struct hp_process hp_process;

/* Fill in everything but config. At start-up. */
void hp_process_look(void);

/* Path of the executable, " (deleted)" cut, and its last part; never NULL. Looked up at the first call: /proc/self/exe costs
 * 30 us, a twentieth of an exec. Async-signal-safe; calls at the same time find the same. */
const char *hp_process_executable(void);
const char *hp_process_executable_name(void);

/* CLOCK_MONOTONIC_COARSE and CLOCK_MONOTONIC in nanoseconds (the vdso's: no system call). Async-signal-safe. */
int64_t hp_process_coarse_nanos(void);
int64_t hp_process_exact_nanos(void);

#endif
