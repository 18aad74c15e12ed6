/* SPDX-License-Identifier: MIT
 * fork.c - see fork.h. */
#include "fork.h"

#include <pthread.h>

#include "allocator_stats.h"
#include "books.h"
#include "dump.h"
#include "fork_mark.h"
#include "heap.h"
#include "helper.h"
#include "labels.h"
#include "live_table.h"
#include "peak_tracker.h"
#include "process.h"
#include "sampled_path.h"
#include "sampler.h"
#include "snapshot.h"
#include "stack_table.h"
#include "sys.h"
#include "thread_state.h"
#include "trigger.h"
#include "unseen.h"
#include "unwinder.h"

enum { FORK_WAIT_NANOS = 20 * 1000 * 1000 };

static bool has_dump_lock; /* guarded by the other locks */

/* A handler that interrupted us with a lock held, or a fork, forks: nothing is taken, and the child has the lock until it returns from
 * the handler, if it does. So many of these forks are under way on this thread; they lie inside each other, and inside the one that
 * took the locks. */
static __thread uint8_t unprepared HP_TLS;

static void before_fork(void) {
  if (hp_thread.locks_held != 0) {
    unprepared++;
    return;
  }
  if (!hp_process.is_inert) hp_trigger_check_handler(); /* servers set theirs, and fork */
  hp_section_enter();
  bool got = hp_dump_lock_for(FORK_WAIT_NANOS);
  hp_peak_tracker_lock();
  hp_unwind_lock_all();
  hp_live_table_lock_all();
  hp_stack_table_lock();
  hp_labels_lock();
  hp_heap_lock_all();
  has_dump_lock = got;
  hp_thread.holds_all_locks = 1; /* and the section stays entered: a handler leaves its request for afterwards */
}

bool hp_fork_has_dump_lock(void) { return hp_thread.holds_all_locks != 0 && has_dump_lock; }

static bool release_tables(void (*unlock_heap)(void)) {
  bool got = has_dump_lock;
  hp_thread.holds_all_locks = 0;
  unlock_heap();
  hp_labels_unlock();
  hp_stack_table_unlock();
  hp_live_table_unlock_all();
  hp_unwind_unlock_all();
  hp_peak_tracker_unlock();
  return got;
}

static void after_fork_parent(void) {
  if (unprepared != 0) {
    unprepared--;
    return;
  }
  bool got = release_tables(hp_heap_unlock_all_parent);
  if (got) hp_dump_unlock();
  hp_unwind_catch_up();
  hp_section_leave();
  hp_thread.dump_wanted = 0;
  hp_trigger_look_again();
}

/* What a child is told, however it came to be. */
static void start_child(bool was_dumping) {
  hp_memory_claim();
  hp_process.pid = hp_sys_getpid();
  hp_dump_after_fork(was_dumping);
  hp_helper_after_fork();
  hp_trigger_after_fork();
  hp_sampler_reseed();
  hp_unwind_after_fork();
  hp_allocator_figures_after_fork();
  hp_unseen_after_fork();
  if (!hp_process.config.children) {
    hp_process.is_inert = true;
    hp_sampler_set_rate(0);
  } else if ((hp_process.config.kinds & 1u << HP_KIND_DELTA) != 0) {
    hp_books_delta_start();
  }
}

/* The parent's handler has interrupted us. If that was between the handlers of a fork, all tables are whole. */
static void start_unprepared_child(void) {
  unprepared--;
  bool has_lock = hp_fork_has_dump_lock();
  start_child(!has_lock);
  if (has_lock) {
    has_dump_lock = false; /* it is free in a child */
    hp_thread_lock_end();
  }
  if (hp_thread.holds_all_locks == 0) return;
  hp_sampled_after_fork();
  hp_peak_tracker_after_fork();
}

static void after_fork_child(void) {
  if (unprepared != 0) {
    start_unprepared_child();
    return;
  }
  bool got = release_tables(hp_heap_unlock_all_child);
  start_child(!got);
  hp_thread.locks_held = 0;
  hp_sampled_after_fork();
  hp_peak_tracker_after_fork();
  hp_unwind_catch_up();
  hp_section_leave();
}

void hp_fork_notice(void) {
  if (HP_LIKELY(!hp_memory_is_copy())) return;
  hp_section_enter();
  bool is_free = hp_dump_try_lock();
  if (is_free) hp_dump_unlock();
  start_child(!is_free);
  if (!hp_thread_is_inside_lock()) {
    hp_sampled_after_fork();
    hp_peak_tracker_after_fork();
  }
  hp_section_leave();
}

/* What pthread_atfork, of which each library has a copy, calls; weakly, for musl's loader (libc_names.h). */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

void hp_fork_start(void) { __register_atfork(before_fork, after_fork_parent, after_fork_child, &__dso_handle); }
