/* SPDX-License-Identifier: MIT
 * resident.h - what the kernel counts of this process's memory. Async-signal-safe. */
#ifndef HP_RESIDENT_H
#define HP_RESIDENT_H

#include "compiler.h"

struct hp_resident {
  uint64_t anon_bytes;
  uint64_t file_bytes; /* shared memory too */
};

/* From /proc/thread-self/statm: what smaps_rollup says costs a walk of all pages under the program's mmap lock, and status ten times
 * the formatting. False: no /proc. */
bool hp_resident_read(struct hp_resident *out);

struct hp_resident_threads {
  uint64_t main_stack_bytes; /* mapped */
  uint64_t count;
};

/* From /proc/thread-self/status. One caller at a time (the dump). False: no /proc, or not as expected. */
bool hp_resident_read_threads(struct hp_resident_threads *out);

#endif
