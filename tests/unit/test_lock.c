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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(increments_under_the_lock_are_all_there),
                                     cmocka_unit_test(trying_a_held_lock_fails)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
