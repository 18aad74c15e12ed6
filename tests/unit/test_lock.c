/* SPDX-License-Identifier: MIT
 * test_lock.c - one at a time, and nobody sleeps for ever. */
#include <pthread.h>

#include "lock.h"
#include "unit_test.h"

enum { THREADS = 6, ROUNDS = 100000 };
static struct hp_lock lock;
static long plain_counter;

static void *count(void *argument) {
  for (int i = 0; i < ROUNDS; i++) {
    hp_lock_acquire(&lock);
    plain_counter++;
    hp_lock_release(&lock);
  }
  return argument;
}

static void increments_under_the_lock_are_all_there(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, count, NULL), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(plain_counter, (long)THREADS * ROUNDS);
  assert_int_equal(lock.word, 0);
}

static void trying_a_held_lock_fails(void **state) {
  (void)state;
  assert_true(hp_lock_try(&lock));
  assert_false(hp_lock_try(&lock));
  hp_lock_release(&lock);
  assert_true(hp_lock_try(&lock));
  hp_lock_release(&lock);
}

static void *hold_next(void *argument) {
  hp_lock_acquire(&lock);
  hp_lock_release(&lock);
  return argument;
}

/* The release whose two halves a sleeper came between: nobody wakes it. */
static void a_wake_up_that_is_missed_is_made_up_for(void **state) {
  (void)state;
  pthread_t thread;
  hp_lock_acquire(&lock);
  assert_int_equal(pthread_create(&thread, NULL, hold_next, NULL), 0);
  while (hp_load_relaxed(&lock.word) != 2) hp_sys_sleep_ms(1);
  hp_sys_sleep_ms(5); /* it sleeps by now */
  hp_store_release(&lock.word, 0);
  hp_thread_lock_end();
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(lock.word, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(increments_under_the_lock_are_all_there),
                                     cmocka_unit_test(trying_a_held_lock_fails),
                                     cmocka_unit_test(a_wake_up_that_is_missed_is_made_up_for)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
