/* SPDX-License-Identifier: MIT
 * test_unwind_remembered.c - walks that take over what has not changed give the stacks of walks that do not. Random trees of
 * calls through frames of every shape are walked at every node, before, between and after the calls of its children, in
 * several threads, with flushes; verifying_unwinder.c walks each a second time and compares. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "frame_shapes.h"
#include "remembered.h"
#include "repeats.h"
#include "rng.h"
#include "unwinder.h"
#include "verifying_unwinder.h"

enum { DEPTH = 36, WALKS = 400000, THREADS = 3, SIGNALS = 2000 };

static __thread struct hp_rng rng;
static __thread int walks_left;
static unsigned set_count;

static void HP_NOINLINE walk(void) {
  uintptr_t pcs[HP_VERIFIED_FRAMES_MAX];
  unsigned flags;
  struct hp_frame_start start = HP_FRAME_START();
  walks_left--;
  size_t max = hp_rng_next(&rng) % 8 == 0 ? 1 + hp_rng_next(&rng) % 20 : HP_VERIFIED_FRAMES_MAX;
  hp_unwind(&start, pcs, max, &flags);
  __asm__ volatile("");
}

/* One node of the tree: the path's `at` is its depth. */
long path_next(struct path *path, long value) {
  size_t depth = path->at;
  walk();
  unsigned children = depth < path->length && walks_left > 0 ? (unsigned)(hp_rng_next(&rng) % 4) : 0;
  if (depth < path->length / 2 && children == 0 && walks_left > 0) children = 1;
  for (unsigned i = 0; i < children; i++) {
    path->at = depth + 1;
    value += all_shapes[hp_rng_next(&rng) % set_count][hp_rng_next(&rng) % SHAPE_COUNT](path, value & 1023);
    if (hp_rng_next(&rng) % 2) walk();
  }
  if (hp_rng_next(&rng) % 20000 == 0) hp_unwind_flush();
  path->at = depth;
  return value;
}

static void *run_trees(void *seed) {
  rng.state = (uintptr_t)seed;
  walks_left = WALKS;
  while (walks_left > 0) {
    struct path path = {.length = 4 + hp_rng_next(&rng) % DEPTH};
    path_next(&path, 1);
  }
  return NULL;
}

static void test_trees_in_one_thread(void **state) {
  (void)state;
  run_trees((void *)1);
  assert_true(hp_verified_walks >= WALKS);
  assert_int_equal(hp_verified_differences, 0);
}

static void test_trees_in_several_threads(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run_trees, (void *)(i + 2));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(hp_verified_differences, 0);
}

static void walk_in_handler(int number) {
  (void)number;
  walk();
}

/* Handlers on the same stack, at places that are no calls, and between walks of the code below them. */
static void *run_with_signals(void *unused) {
  (void)unused;
  rng.state = 77;
  struct sigaction action = {.sa_handler = walk_in_handler};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < SIGNALS; i++) {
    walks_left = 20;
    struct path path = {.length = 8};
    path_next(&path, i);
    raise(SIGUSR1);
  }
  return NULL;
}

static void test_walks_in_signal_handlers_between_others(void **state) {
  (void)state;
  run_with_signals(NULL);
  assert_int_equal(hp_verified_differences, 0);
}

/* Loops that allocate at the end of a way down through plain frames, which is another one each time; the frame register is
 * whatever the compiler keeps there. */
static HP_NOINLINE long loop_at_depth(unsigned depth, unsigned times) {
  long sum = 0;
  if (depth > 0 && hp_rng_next(&rng) % 2 != 0) {
    sum = loop_at_depth(depth - 1, times) + 1;
    __asm__ volatile("# one call site" : "+r"(sum));
  } else if (depth > 0) {
    sum = loop_at_depth(depth - 1, times) + 2;
    __asm__ volatile("# another call site" : "+r"(sum));
  }
  for (unsigned i = 0; depth % 8 == 0 && i < times; i++) {
    walk();
    sum += i;
  }
  return sum;
}

static void test_loops_find_what_was_noted(void **state) {
  (void)state;
  rng.state = 11;
  uint64_t before = hp_verified_memos;
  uint64_t walks_before = hp_verified_walks;
  for (int i = 0; i < 2000; i++) {
    loop_at_depth(hp_rng_next(&rng) % 60, 1 + hp_rng_next(&rng) % 40);
    if (hp_rng_next(&rng) % 100 == 0) hp_unwind_flush();
  }
  assert_true(hp_verified_memos - before > (hp_verified_walks - walks_before) / 8);
  assert_int_equal(hp_verified_differences, 0);
}

static void test_records_were_used(void **state) {
  (void)state;
  struct hp_unwind_stats stats;
  hp_unwind_get_stats(&stats);
  print_message("%lu walks, %lu took over a stretch, %lu were the same stack again, %lu misses\n", hp_verified_walks,
                stats.prefix_reuses, hp_verified_memos, stats.rule_misses);
  assert_true(stats.prefix_reuses > hp_verified_walks / 4);
}

/* Far more threads than there is room for: the others just walk. */
static void *walk_few_times(void *unused) {
  (void)unused;
  rng.state = 5;
  for (int i = 0; i < HP_REPEATS_FIRST_WALK + 40; i++) walk(); /* enough for a thread to ask for everything */
  return NULL;
}

static void test_many_threads_share_a_bounded_pool(void **state) {
  (void)state;
  enum { BATCH = 400 };
  static pthread_t threads[BATCH];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 16);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < BATCH; i++) assert_int_equal(pthread_create(&threads[i], &attributes, walk_few_times, NULL), 0);
    for (int i = 0; i < BATCH; i++) pthread_join(threads[i], NULL);
  }
  pthread_attr_destroy(&attributes);
  struct hp_unwind_stats stats;
  hp_unwind_get_stats(&stats);
  assert_true(stats.cache_bytes < 7 << 20); /* 256 records, repeats for 64, the rules */
  assert_int_equal(hp_verified_differences, 0);
}

/* A thread at the place of one that came to its end, or was forked away from, in the middle of a record: whatever stands in that,
 * nothing of it is followed. */
static struct hp_remembered *record_of_last;

static HP_NOINLINE long walk_whole(unsigned depth) {
  uintptr_t pcs[HP_VERIFIED_FRAMES_MAX];
  unsigned flags;
  struct hp_frame_start start = HP_FRAME_START();
  long n = (long)hp_unwind(&start, pcs, HP_VERIFIED_FRAMES_MAX, &flags);
  if (depth > 0) n += walk_whole(depth - 1);
  __asm__ volatile("" : "+r"(n));
  return n;
}

static void *walk_in_loop(void *unused) {
  (void)unused;
  for (unsigned i = 0; i < HP_REPEATS_FIRST_WALK; i++) walk_whole(20 + i % 7);
  record_of_last = hp_remembered_tls.record;
  return NULL;
}

static void tear(struct hp_remembered *record) {
  for (size_t i = 0; i < sizeof record->slots / sizeof record->slots[0]; i++) record->slots[i].at = NULL;
  if (record->repeats == NULL) return;
  for (size_t e = 0; e < HP_REPEATS_ENTRIES; e++) {
    for (size_t i = 0; i < HP_REPEATS_SLOTS_MAX; i++) record->repeats->entries[e].slots[i].at = NULL;
  }
}

static void test_what_a_thread_left_torn_is_not_followed(void **state) {
  (void)state;
  static char stack[1 << 20] __attribute__((aligned(4096)));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  assert_int_equal(pthread_attr_setstack(&attributes, stack, sizeof stack), 0);
  struct hp_remembered *first = NULL;
  for (int i = 0; i < 3; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, &attributes, walk_in_loop, NULL), 0);
    pthread_join(thread, NULL);
    if (i == 0) first = record_of_last;
    assert_non_null(first);
    assert_ptr_equal(record_of_last, first); /* the place is the thread pointer's */
    assert_true(first->count > 0 && first->slot_count > 0 && first->repeats != NULL);
    tear(first);
  }
  pthread_attr_destroy(&attributes);
  assert_int_equal(hp_verified_differences, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_trees_in_one_thread),
      cmocka_unit_test(test_trees_in_several_threads),
      cmocka_unit_test(test_walks_in_signal_handlers_between_others),
      cmocka_unit_test(test_loops_find_what_was_noted),
      cmocka_unit_test(test_records_were_used),
      cmocka_unit_test(test_what_a_thread_left_torn_is_not_followed),
      cmocka_unit_test(test_many_threads_share_a_bounded_pool),
  };
  while (all_shapes[set_count] != NULL) set_count++;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
