/* SPDX-License-Identifier: MIT
 * allocator_stats.h - what the allocator behind us says of itself: glibc's mallinfo2, jemalloc's stats.*, tcmalloc's and
 * mimalloc's exported figures. All of these take the allocator's locks, so they are asked only at a safe moment: on a thread
 * that is certainly not inside the allocator (the helper; an API call; the end of a sampled allocation). A dump made in a
 * handler uses the figures of the last safe moment and says how old they are. */
#ifndef HP_ALLOCATOR_STATS_H
#define HP_ALLOCATOR_STATS_H

#include "compiler.h"
#include "live_table.h"
#include "stack_table.h"

struct hp_allocator_figures {
  const char *name; /* glibc, jemalloc, tcmalloc, mimalloc, other */
  bool has_figures;
  uint64_t inuse_bytes;          /* handed out, with the allocator's rounding and headers */
  uint64_t free_bytes;           /* kept for reuse: free lists, caches, fragmentation */
  uint64_t mmap_bytes;           /* of inuse: blocks with a mapping of their own; 0 if it does not say */
  uint64_t system_bytes;         /* what it has from the system, its own tables included: no more of it can be resident */
  uint64_t age_nanos;            /* since they were read, by the coarse clock */
  uint32_t number;               /* of the reading: figures of the same number are the same figures */
  struct hp_stack_totals totals; /* of the books when it was about to be asked, and their errors */
  struct hp_live_moments moments;
};

/* At start-up: which allocator is it? */
void hp_allocator_stats_init(void);
/* Ask it now. Only at a safe moment, never in a handler. Does nothing for allocators without figures. */
void hp_allocator_figures_refresh(void);
/* In a forked child: whoever was writing them down is not here. */
void hp_allocator_figures_after_fork(void);
/* The figures of the last refresh. Async-signal-safe. */
void hp_allocator_figures_get(struct hp_allocator_figures *out);

#endif
