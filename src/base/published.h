/* SPDX-License-Identifier: MIT
 * published.h - what the command reads in the memory of a profiled process: its environment cannot be relied on, since servers write
 * their titles over it (redis, nginx, postgres), and the kernel tells that a signal has a handler, but not whose.
 *
 * The structure lies in the library's writable data, at a multiple of its alignment, and is known by its first bytes. A member may
 * only be added at the end: library and command may be of different versions. */
#ifndef HP_PUBLISHED_H
#define HP_PUBLISHED_H

#include <stdint.h>

#define HP_PUBLISHED_MAGIC "\x7fheapprof: settings of this process"
enum { HP_PUBLISHED_MAGIC_BYTES = 40, HP_PUBLISHED_ALIGNMENT = 64, HP_PUBLISHED_TEXT_MAX = 4096 };

struct hp_published {
  char magic[HP_PUBLISHED_MAGIC_BYTES];
  uint32_t size_bytes;     /* of this structure; 0: nothing to read yet */
  int32_t signal;          /* that asks for a dump; 0: none */
  uint32_t is_signal_lost; /* the program has put a handler of its own in our place */
  uint32_t unused_;
  uint64_t out_template; /* addresses of texts in that process, each below HP_PUBLISHED_TEXT_MAX bytes; 0: unknown */
  uint64_t directory;    /* where the process started: what a relative template is meant from */
};

#endif
