/* SPDX-License-Identifier: MIT
 * trigger.h - who wants a dump, and who does it.
 *
 *   signal handler ─┐
 *   period, growth ─┼─> wanted (one bit a reason) ─> helper thread, if the program has threads
 *   exit ───────────┘                             └> else the thread that noticed: at once, or at the end of the section
 *
 * Invariants  a request stays in `wanted` until a dump that began after it has run; requests of one reason coalesce.
 *             Whoever releases the dump lock looks at `wanted` again, so none is lost between two threads.
 * Signals     everything here is async-signal-safe; the handler runs a dump only if the thread is not in the profiler's own
 *             section and there is no helper. */
#ifndef HP_TRIGGER_H
#define HP_TRIGGER_H

#include "dump.h"

/* At start-up: install the handler of HEAPPROF_SIGNAL, start the period's clock. */
void hp_trigger_start(void);
/* Has the program put a handler of its own in our place? That is published, and said once. */
void hp_trigger_check_handler(void);
/* After a fork, in the child: no request is pending, the period begins anew, growth counts from what is in use now. */
void hp_trigger_after_fork(void);

/* Note the wish and see that it is served: by the helper, by this thread, or at the end of its section. */
void hp_trigger_request(enum hp_dump_reason reason);
/* The dump lock was released: see that what was asked for meanwhile is served, as above. */
void hp_trigger_look_again(void);
/* Is there a request? Is there one for the last dump? Any thread. */
bool hp_trigger_is_wanted(void);
bool hp_trigger_is_last_wanted(void);
/* Serve what is wanted, here and now (helper; end of a section). */
void hp_trigger_serve(void);
/* The end of every sampled section (preload/sampled_path.h, hp_sampled_epilogue). */
void hp_trigger_section_end(void);

/* When the next periodic dump is due, nanoseconds of hp_process_coarse_nanos(); INT64_MAX: never. If it is due, moves on to
 * the next one after now and returns true in *out_is_due. Any thread: one of several gets the true. */
int64_t hp_trigger_period_check(int64_t now_nanos, bool *out_is_due);

/* A dump is being made now: growth is measured from here, if it never stood higher. Dump lock held. */
void hp_trigger_note_growth(void);

/* The process ends: waits a bounded time for a dump under way, has the last one written if asked (by the helper, if there is
 * one), and lets no further one begin but by heapprof_dump(). */
void hp_trigger_exit(bool with_dump);

#endif
