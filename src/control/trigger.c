/* SPDX-License-Identifier: MIT
 * trigger.c - see trigger.h. */
#include "trigger.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>

#include "allocator_stats.h"
#include "books.h"
#include "config.h"
#include "fork.h"
#include "helper.h"
#include "labels.h"
#include "log.h"
#include "process.h"
#include "publish.h"
#include "recorder.h"
#include "sys.h"
#include "thread_state.h"

enum {
  HANDLER_CHECK_NANOS = 100 * 1000 * 1000,
  EXIT_WAIT_SECONDS = 10,
  EXIT_WAIT_INSIDE_SECONDS = 1,
  EXIT_GRACE_NANOS = 500 * 1000 * 1000, /* for the helper to begin the last dump */
  EXIT_LOOK_NANOS = 10 * 1000 * 1000,
  BACKOFF_MAX = 6
};
static const uint32_t EXIT_BIT = 1u << HP_DUMP_EXIT;

static uint32_t wanted;                             /* atomic bits by reason */
static int64_t next_period_nanos = INT64_MAX;       /* atomic */
static int64_t next_check_nanos;                    /* atomic */
static uint64_t growth_mark_bytes;                  /* atomic: in use at the highest dump so far */
static bool is_handler_lost;                        /* said once */
static bool is_ending;                              /* guarded by the dump lock: the last dump has begun */
static uint32_t is_last_dump_over;                  /* atomic, futex word */
static unsigned failures_in_a_row, periods_to_skip; /* guarded by the dump lock */

/* ---- the signal ---- */
static void handle_signal(int number, siginfo_t *info, void *context) {
  (void)number;
  (void)info;
  (void)context;
  int saved_errno = errno;
  hp_trigger_request(HP_DUMP_SIGNAL);
  errno = saved_errno;
}

void hp_trigger_check_handler(void) {
  int number = hp_process.config.signal;
  if (number == 0) return;
  struct {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
  } now = {0};
  if (hp_syscall4(SYS_rt_sigaction, number, NULL, &now, 8) != 0) return;
  bool is_lost = now.handler != (void *)handle_signal;
  hp_store_relaxed(&hp_published.is_signal_lost, is_lost);
  if (!is_lost || hp_exchange(&is_handler_lost, true)) return;
  /* Nobody chose the default signal; programs that use it for themselves (xargs, every JVM) are no news. */
  enum hp_log_level level = hp_process.config.signal_is_chosen ? HP_LOG_WARN : HP_LOG_INFO;
  hp_log(level, "the program has taken over signal %d, it no longer dumps; choose another with HEAPPROF_SIGNAL", number);
}

/* ---- serving ---- */

/* A periodic dump whose output keeps failing is tried less and less often (after 1, 2, 4 ... 64 periods). */
static bool is_backing_off(enum hp_dump_reason reason) {
  if (reason != HP_DUMP_PERIODIC || periods_to_skip == 0) return false;
  periods_to_skip--;
  return true;
}

static void note_result(int result) {
  if (result == 0) {
    failures_in_a_row = periods_to_skip = 0;
    return;
  }
  if (failures_in_a_row < BACKOFF_MAX) failures_in_a_row++;
  periods_to_skip = (1u << failures_in_a_row) - 1;
}

/* The mark goes up to what is in use, if that is at least so much more: never down, whatever is freed meanwhile. */
static bool raise_growth_mark(uint64_t step_bytes) {
  uint64_t now = hp_recorder_inuse_bytes(), mark = hp_load_relaxed(&growth_mark_bytes);
  do {
    if (now <= mark || now - mark < step_bytes) return false;
  } while (!__atomic_compare_exchange_n(&growth_mark_bytes, &mark, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return true;
}

void hp_trigger_note_growth(void) { raise_growth_mark(0); }

/* Dump lock held. Or the process would end in the middle of the helper's next dump. */
static void dump_last(void) {
  is_ending = true;
  hp_dump_write(HP_DUMP_EXIT, NULL);
  hp_store_release(&is_last_dump_over, 1);
  hp_sys_futex(&is_last_dump_over, FUTEX_WAKE_PRIVATE, 1, NULL);
}

/* The first point of the period's grid at or after `when`, from the point `due`. */
static int64_t on_grid(int64_t due, int64_t when) {
  int64_t period = (int64_t)hp_process.config.period_nanos;
  return when <= due ? due : due + (when - due + period - 1) / period * period;
}

/* A periodic dump began then and is over now. Before the next the program gets as much time as this one took: one that takes longer
 * than the period would follow upon itself, and a program without threads would come no further. */
static void leave_time_after(int64_t begin) {
  int64_t now = hp_process_coarse_nanos(), due = hp_load_relaxed(&next_period_nanos);
  int64_t next = on_grid(due, now + (now - begin));
  if (next != due) __atomic_compare_exchange_n(&next_period_nanos, &due, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Dump lock held. One dump serves every reason that is wanted at its beginning; it is named after the strongest. */
static void dump_wanted(void) {
  uint32_t bits;
  while ((bits = hp_exchange(&wanted, 0)) != 0) {
    enum hp_dump_reason reason = HP_DUMP_SIGNAL;
    while ((bits >> reason & 1) == 0) reason++;
    if (is_ending) continue;
    if ((bits & EXIT_BIT) != 0) {
      dump_last();
      continue;
    }
    if (is_backing_off(reason)) continue;
    hp_trigger_note_growth();
    int64_t begin = hp_process_coarse_nanos();
    note_result(hp_dump_write(reason, NULL));
    if ((bits >> HP_DUMP_PERIODIC & 1) != 0) leave_time_after(begin);
  }
}

void hp_trigger_serve(void) {
  int saved_errno = errno;
  hp_section_enter();
  while (hp_load_acquire(&wanted) != 0 && hp_dump_try_lock()) {
    dump_wanted();
    hp_dump_unlock();
  }
  hp_section_leave();
  errno = saved_errno;
}

bool hp_trigger_is_wanted(void) { return hp_load_acquire(&wanted) != 0; }
bool hp_trigger_is_last_wanted(void) { return (hp_load_acquire(&wanted) & EXIT_BIT) != 0; }

/* Who wants and then finds the lock taken, and who releases it and then looks at what is wanted (hp_dump_unlock): at least one of them
 * must see what the other did. */
static void want(enum hp_dump_reason reason) {
  __atomic_fetch_or(&wanted, 1u << reason, __ATOMIC_ACQ_REL);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The helper's table of descriptors is its own (private_files.h), while the program's other threads, which still run, may
 * close or replace any number in this thread's. So it makes the last dump; but if it does not begin, being stuck in the
 * allocator that is asked for its figures, this thread does. False: there is no helper. */
static bool let_helper_dump_last(void) {
  const struct timespec look = {0, EXIT_LOOK_NANOS};
  if (!hp_helper_is_running()) return false;
  want(HP_DUMP_EXIT);
  hp_helper_wake();
  int64_t begin = hp_process_exact_nanos();
  while (hp_load_acquire(&is_last_dump_over) == 0) {
    int64_t waited = hp_process_exact_nanos() - begin;
    if (waited > (int64_t)EXIT_WAIT_SECONDS * 1000000000) break;
    if (waited > EXIT_GRACE_NANOS && hp_dump_try_lock()) {
      if ((__atomic_fetch_and(&wanted, ~EXIT_BIT, __ATOMIC_ACQ_REL) & EXIT_BIT) != 0) dump_last();
      hp_dump_unlock();
      break;
    }
    hp_sys_futex(&is_last_dump_over, FUTEX_WAIT_PRIVATE, 0, &look);
  }
  return true;
}

/* is_locked: the fork that exit() interrupted has the lock, and nobody comes back to release it. */
static void dump_last_here(bool with_dump, int64_t wait_seconds, bool is_locked) {
  if (!is_locked && !hp_dump_lock_for(wait_seconds * 1000000000)) return;
  if (with_dump) {
    dump_last();
  } else {
    is_ending = true;
  }
  if (!is_locked) hp_dump_unlock();
}

/* exit() may have been called by a handler that interrupted this thread's own section. Nothing returns there any more, so a
 * lock held there counts as ours; but for the live table, which may be half changed, the books are read without one. */
void hp_trigger_exit(bool with_dump) {
  bool is_inside = hp_thread_is_inside_lock(), is_locked = hp_fork_has_dump_lock();
  if (is_inside && (hp_recorder_labels() & HP_LABEL_AGE) != 0) {
    hp_log(HP_LOG_WARN, "no dump at the end: exit() was called by a signal handler that interrupted the profiler");
    return;
  }
  hp_fork_notice();
  if (hp_process.is_inert) return;
  hp_trigger_check_handler();
  bool may_wait = with_dump && hp_thread.section == 0; /* else a handler interrupted us, or we are the helper */
  hp_section_enter();
  if (is_inside) hp_thread.holds_all_locks = 1;
  if (!may_wait || !let_helper_dump_last()) {
    dump_last_here(with_dump, is_inside ? EXIT_WAIT_INSIDE_SECONDS : EXIT_WAIT_SECONDS, is_locked);
  }
  if (is_inside) hp_thread.holds_all_locks = 0;
  hp_section_leave();
}

void hp_trigger_request(enum hp_dump_reason reason) {
  hp_fork_notice();
  if (hp_process.is_inert) return; /* a forked child that is not to profile: the handler is still there */
  want(reason);
  hp_trigger_look_again();
}

void hp_trigger_look_again(void) {
  if (!hp_trigger_is_wanted() || hp_helper_wake()) return;
  if (hp_thread.section != 0) {
    hp_thread.dump_wanted = 1;
    return;
  }
  hp_trigger_serve();
}

/* ---- the clock ---- */
int64_t hp_trigger_period_check(int64_t now, bool *out_is_due) {
  int64_t due = hp_load_relaxed(&next_period_nanos);
  *out_is_due = false;
  if (now < due) return due;
  int64_t next = on_grid(due, now + 1); /* no drift, and no pile-up after a long sleep */
  *out_is_due = __atomic_compare_exchange_n(&next_period_nanos, &due, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return hp_load_relaxed(&next_period_nanos);
}

static bool has_grown(void) {
  uint64_t growth = hp_process.config.growth_bytes;
  return growth != 0 && raise_growth_mark(growth);
}

void hp_trigger_section_end(void) {
  hp_fork_notice();
  if (HP_UNLIKELY(hp_process.is_inert)) return;
  hp_section_enter(); /* the clock may be the program's own, and allocate: a sample there would end here again */
  int64_t now = hp_process_coarse_nanos();
  hp_section_leave();
  if (HP_UNLIKELY(hp_thread.dump_wanted != 0)) {
    hp_thread.dump_wanted = 0;
    hp_trigger_serve();
  }
  if (HP_UNLIKELY(has_grown())) hp_trigger_request(HP_DUMP_GROWTH);
  int64_t check = hp_load_relaxed(&next_check_nanos);
  if (HP_UNLIKELY(now >= check) && __atomic_compare_exchange_n(&next_check_nanos, &check, now + HANDLER_CHECK_NANOS, false,
                                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    hp_trigger_check_handler();
  }
  if (hp_helper_is_running()) return; /* it keeps the period */
  bool is_due;
  hp_trigger_period_check(now, &is_due);
  if (HP_UNLIKELY(is_due)) {
    hp_section_enter();
    hp_allocator_figures_refresh(); /* the real allocator has returned: no lock of it is held here */
    hp_section_leave();
    hp_trigger_request(HP_DUMP_PERIODIC);
  }
}

/* ---- start ---- */
static void install_handler(void) {
  int number = hp_process.config.signal;
  if (number == 0) return;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handle_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

static void start_period(void) {
  int64_t now = hp_process_coarse_nanos();
  int64_t period = (int64_t)hp_process.config.period_nanos;
  hp_store_relaxed(&next_period_nanos, period == 0 ? INT64_MAX : now + period);
  hp_store_relaxed(&next_check_nanos, now + HANDLER_CHECK_NANOS / 10);
}

void hp_trigger_start(void) {
  hp_recorder_track_inuse(hp_process.config.growth_bytes != 0);
  start_period();
  install_handler();
}

void hp_trigger_after_fork(void) {
  hp_store_relaxed(&wanted, 0);
  is_ending = false;
  hp_store_relaxed(&is_last_dump_over, 0);
  hp_thread.dump_wanted = 0;
  hp_store_relaxed(&growth_mark_bytes, hp_recorder_inuse_bytes()); /* it may never come near its parent's */
  start_period();
}
