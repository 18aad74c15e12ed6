/* SPDX-License-Identifier: MIT
 * unseen.h - memory that the profile cannot show: mapped by the program itself, by an allocator of its own or a runtime's, or
 * taken from the C library round the interposed names (__libc_malloc, a plugin opened with RTLD_DEEPBIND).
 *
 * Said at once in a comment of the file and once a process in the log, with figures that are lower bounds. A program that
 * is ordinary must never be told so: everything that is uncertain counts as seen (bounds below), and what rests on figures
 * of two moments must be so in three dumps.
 * Callers     the dump, one at a time, on its thread. Async-signal-safe. Cost: arithmetic; when suspicious /proc/self/status and a walk over the
 *             stacks. */
#ifndef HP_UNSEEN_H
#define HP_UNSEEN_H

#include "allocator_stats.h"
#include "books.h"
#include "live_table.h"
#include "resident.h"

/* At least so much is not in the profile; 0: not known to be. */
struct hp_unseen {
  uint64_t resident_bytes;  /* anonymous, resident, from elsewhere than the intercepted functions */
  uint64_t allocator_bytes; /* handed out by the allocator, not through the intercepted functions */
  bool is_certain;          /* resident_bytes is more than all that was ever allocated can be */
};

struct hp_unseen_facts {
  uint64_t anon_bytes;                /* resident, read before the books */
  uint64_t other_bytes;               /* of these at most: the profiler's own, the program's static data */
  struct hp_resident_threads threads; /* all 0: not asked */
  uint64_t rate_max_bytes;            /* the highest sample rate so far; UINT64_MAX: it was off */
  bool is_inuse_whole;                /* no live record was ever refused */
  double alloc_objects, alloc_bytes;
  double inuse_objects, inuse_bytes; /* at most, at any moment since the allocator was asked */
  double alloc_objects_error, alloc_bytes_error, inuse_objects_error, inuse_bytes_error;
  double grown_objects, grown_bytes; /* allocated since then */
  struct hp_allocator_figures allocator;
};

/* Pure. */
void hp_unseen_judge(const struct hp_unseen_facts *facts, struct hp_unseen *out);

/* The dump has read the books; resident is from before. NULL: unknown. */
void hp_unseen_look(const struct hp_reading *reading, const struct hp_resident *resident);
/* What the last look found that can be relied on. */
struct hp_unseen hp_unseen_found(void);
/* In a forked child: what was found in its parent does not count. */
void hp_unseen_after_fork(void);

#endif
