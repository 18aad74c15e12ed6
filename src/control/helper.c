/* SPDX-License-Identifier: MIT
 * helper.c - see helper.h. */
#include "helper.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>

#include "allocator_stats.h"
#include "fork.h"
#include "private_files.h"
#include "process.h"
#include "sampler.h"
#include "sys.h"
#include "thread_hooks.h"
#include "thread_state.h"
#include "trigger.h"

enum helper_state { HELPER_NONE, HELPER_STARTING, HELPER_RUNNING, HELPER_FORBIDDEN };

static uint32_t state;                /* atomic, enum helper_state */
static bool has_threads;              /* atomic: the program has started one, in this process */
static uint32_t bell;                 /* atomic: futex word, counts wake-ups */
static pthread_t thread, main_thread; /* thread: valid while the state is HELPER_RUNNING */
enum { STACK_BYTES = 128 * 1024 };

bool hp_helper_is_running(void) { return hp_load_acquire(&state) == HELPER_RUNNING; }

static void ring(void) {
  __atomic_fetch_add(&bell, 1, __ATOMIC_RELEASE);
  hp_sys_futex(&bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

bool hp_helper_wake(void) {
  if (!hp_helper_is_running()) return false;
  ring();
  return true;
}

static void wait_for_bell(uint32_t heard, int64_t until_nanos) {
  if (until_nanos == INT64_MAX) {
    hp_sys_futex(&bell, FUTEX_WAIT_PRIVATE, heard, NULL);
    return;
  }
  int64_t wait = until_nanos - hp_process_coarse_nanos();
  if (wait <= 0) return;
  const struct timespec timeout = {wait / 1000000000, wait % 1000000000};
  hp_sys_futex(&bell, FUTEX_WAIT_PRIVATE, heard, &timeout);
}

static void *run(void *argument) {
  (void)argument;
  hp_syscall2(SYS_prctl, 15 /* PR_SET_NAME */, "heapprof");
  hp_section_enter(); /* nothing this thread allocates is the program's */
  uint64_t ours = hp_process.config.signal == 0 ? 0 : (uint64_t)1 << (hp_process.config.signal - 1);
  uint64_t blocked = HP_SYS_SIGNALS_TO_BLOCK & ~ours;
  hp_sys_sigprocmask(SIG_SETMASK, &blocked, NULL);
  while (true) {
    uint32_t heard = hp_load_acquire(&bell);
    if (hp_load_acquire(&state) == HELPER_FORBIDDEN) return NULL;
    bool is_due;
    int64_t next = hp_trigger_period_check(hp_process_coarse_nanos(), &is_due);
    if (is_due) hp_trigger_request(HP_DUMP_PERIODIC);
    if (hp_trigger_is_wanted()) {
      hp_private_files_take();
      /* A handler that interrupted malloc may have called exit(), and waits for us while it holds the allocator's lock. */
      if (!hp_trigger_is_last_wanted()) hp_allocator_figures_refresh();
      hp_trigger_serve();
      if (hp_trigger_is_wanted()) hp_sys_sleep_ms(1); /* somebody else dumps */
      continue;
    }
    wait_for_bell(heard, next);
  }
}

/* It has been told to end. The process must not end in our thread, with exit handlers on our small stack. */
static void wait_for_its_end(void) {
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  ring();
  hp_next_thread.pthread_join(thread, NULL);
  pthread_setcancelstate(cancel_state, NULL);
}

void hp_helper_start(void) {
  hp_fork_notice();
  hp_store_relaxed(&has_threads, true);
  hp_helper_check();
}

void hp_helper_check(void) {
  uint32_t expected = HELPER_NONE;
  if (hp_process.is_inert || !hp_load_relaxed(&has_threads) || !hp_sampler_was_on()) return;
  if (!__atomic_compare_exchange_n(&state, &expected, HELPER_STARTING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  hp_section_enter();
  pthread_attr_t attributes;
  const uint64_t all = HP_SYS_SIGNALS_TO_BLOCK;
  uint64_t old;
  pthread_attr_init(&attributes);
  hp_next_thread.pthread_attr_setstacksize(&attributes, STACK_BYTES);
  hp_sys_sigprocmask(SIG_SETMASK, &all, &old);
  int failed = hp_next_thread.pthread_create(&thread, &attributes, run, NULL);
  hp_sys_sigprocmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  expected = HELPER_STARTING;
  if (!__atomic_compare_exchange_n(&state, &expected, failed == 0 ? HELPER_RUNNING : HELPER_NONE, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED) &&
      failed == 0) {
    wait_for_its_end(); /* the main thread left meanwhile, and the caller may be the last */
  }
  hp_section_leave();
}

/* Waits for a dump under way. */
bool hp_helper_end(void) {
  if (hp_exchange(&state, HELPER_FORBIDDEN) != HELPER_RUNNING) return false;
  wait_for_its_end();
  return true;
}

void hp_helper_main_leaves(void) {
  if (hp_sys_gettid() == hp_process.pid) hp_helper_end();
}

void hp_helper_cancelled(pthread_t whom) {
  if (pthread_equal(whom, main_thread)) hp_helper_end();
}

void hp_helper_note_main(void) { main_thread = pthread_self(); }

void hp_helper_after_fork(void) {
  hp_helper_note_main();
  hp_store_relaxed(&has_threads, false);
  if (hp_load_relaxed(&state) != HELPER_FORBIDDEN) hp_store_relaxed(&state, HELPER_NONE);
}
