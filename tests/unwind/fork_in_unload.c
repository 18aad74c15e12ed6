/* SPDX-License-Identifier: MIT
 * fork_in_unload.c - see fork_in_unload.h. */
#include "fork_in_unload.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwinder.h"

enum { FRAMES_MAX = 64, WALKS = 20, CHILD_SECONDS = 300, IS_WHOLE = 0 };

static pthread_barrier_t barrier;
static size_t depth_before;

/* Walks and their depth are compared: each is made as many calls below its test, whatever the compiler would rather do. */
#define NOT_INLINED __attribute__((noinline))

static NOT_INLINED size_t walk(void) {
  uintptr_t pcs[FRAMES_MAX];
  unsigned flags;
  struct hp_frame_start start = HP_FRAME_START();
  size_t depth = hp_unwind(&start, pcs, FRAMES_MAX, &flags);
  __asm__ volatile("");
  return depth;
}

static uint64_t misses(void) {
  struct hp_unwind_stats stats;
  hp_unwind_get_stats(&stats);
  return stats.rule_misses;
}

/* All from one place; their depth, 0: it differs. */
static NOT_INLINED size_t walk_times(int n) {
  size_t depth = walk();
  for (int i = 1; i < n; i++) depth = walk() == depth ? depth : 0;
  return depth;
}

/* Walks here, where all was known a moment ago, miss nothing once they have been made, from the very same places. */
static NOT_INLINED int status_of_walks(void) {
  static const volatile int ROUNDS = 2; /* unknown to the compiler, which would write the call twice */
  uint64_t before = 0;
  for (int round = 0; round < ROUNDS; round++) {
    before = misses();
    if (walk_times(WALKS) != depth_before) return 1;
  }
  return misses() == before ? IS_WHOLE : 2;
}

static NOT_INLINED void note_depth(void) {
  depth_before = walk_times(WALKS);
  __asm__ volatile("");
}

static int status_of_child(pid_t child) {
  int status;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static pid_t fork_as_control_does(void) {
  hp_unwind_lock_all();
  pid_t child = fork();
  hp_unwind_unlock_all();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    hp_unwind_after_fork();
  }
  return child;
}

static void *unload(void *unused) {
  hp_unwind_before_unload();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  hp_unwind_after_unload();
  return unused;
}

void test_a_child_forked_during_an_unload_caches_again(void **state) {
  (void)state;
  pthread_t thread;
  note_depth();
  assert_int_equal(status_of_walks(), IS_WHOLE);
  pthread_barrier_init(&barrier, NULL, 2);
  assert_int_equal(pthread_create(&thread, NULL, unload, NULL), 0);
  pthread_barrier_wait(&barrier);
  pid_t child = fork_as_control_does();
  if (child == 0) _exit(status_of_walks());
  assert_int_equal(status_of_child(child), IS_WHOLE);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&barrier);
  assert_int_equal(status_of_walks(), IS_WHOLE);
}

void test_a_child_forked_by_the_unloading_thread_ends_it(void **state) {
  (void)state;
  note_depth();
  hp_unwind_before_unload();
  pid_t child = fork_as_control_does(); /* as in a destructor of the library */
  if (child == 0) {
    hp_unwind_after_unload();
    _exit(status_of_walks());
  }
  hp_unwind_after_unload();
  assert_int_equal(status_of_child(child), IS_WHOLE);
  assert_int_equal(status_of_walks(), IS_WHOLE);
}
