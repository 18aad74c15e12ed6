/* SPDX-License-Identifier: MIT
 * sampled_path.h - the slow twins of interpose*.c: what an allocation or a free does when the hot test did not let it pass.
 *
 * Invariants  errno is what the real function left. Inside the profiler's own section everything passes through unsampled.
 *             Each twin is entered by a tail call of its exported name and keeps a frame pointer, so that its caller's frame
 *             is the program's (unwinder.h, HP_FRAME_START).
 * Threads     any. */
#ifndef HP_SAMPLED_PATH_H
#define HP_SAMPLED_PATH_H

#include "unwinder.h"

/* Each as the real function of that name: same result, same errno. */
void *hp_sampled_malloc(size_t size);
void *hp_sampled_calloc(size_t n, size_t size);
void *hp_sampled_realloc(void *ptr, size_t size);
int hp_sampled_posix_memalign(void **out, size_t alignment, size_t size);
/* real: aligned_alloc or memalign of the allocator behind. */
void *hp_sampled_aligned(size_t alignment, size_t size, void *(*real)(size_t, size_t));
/* real: valloc or pvalloc. */
void *hp_sampled_valloc(size_t size, void *(*real)(size_t));
/* The rate changes while the program runs: from now on every malloc looks whether its thread has heard of it. Any thread. */
void hp_sampled_change_rate(uint64_t bytes);
/* A block whose filter counter is not 0 is about to be freed: take its record out, if there is one, and free it. */
void hp_sampled_free(void *ptr);
/* The same without the free, which the caller makes next. Preserves errno. */
void hp_sampled_forget(void *ptr);

/* For twins elsewhere (interpose_cxx.c, interpose_jemalloc.c, api): the pieces. */
/* A sample of this weight was allocated at ptr (NULL: nothing happened) by the caller at start. Preserves errno. */
void hp_sampled_record(void *ptr, size_t size, float weight, const struct hp_frame_start *start);
/* The sampler's answer for this call: 0 also inside the profiler's own section (counted). */
float hp_sampled_decide(size_t size);

struct hp_live_record;
/* Before a real realloc: take the record out (false: there is none); after it: count the free, or put it back. Both preserve
 * errno. */
bool hp_sampled_take(void *ptr, struct hp_live_record *out);
void hp_sampled_settle(const struct hp_live_record *record, bool is_freed);

/* The code [start, end) is an operator new that ends in malloc and was entered through ours, which left the size it was
 * asked for in hp_thread.new_size: that is what the program requested (the runtime turns 0 into 1 and rounds up to the
 * alignment). Any thread; takes no lock. */
void hp_sampled_add_forwarder(uintptr_t start, uintptr_t end);

/* What control wants done at the end of a section (NULL: nothing): serve a request that came meanwhile, look at the clock.
 * Set once at start-up. */
extern void (*hp_sampled_epilogue)(void);

/* The section's end: hp_section_leave() and what control wants done there. */
void hp_sampled_leave_section(void);

/* From now on the stacks of a module that goes are closed, so that code which takes its addresses gets stacks of its own,
 * and opened when it comes back. Once, at start-up, before the first sample. */
void hp_sampled_follow_modules(void);

/* In a forked child: what other threads had in their hands is free. Not if this thread was interrupted inside a lock. */
void hp_sampled_after_fork(void);

/* Frames kept, set at start-up: HEAPPROF_MAX_DEPTH. */
void hp_sampled_set_max_depth(uint32_t frames);

#endif
