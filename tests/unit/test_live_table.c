/* SPDX-License-Identifier: MIT
 * test_live_table.c - against a plain array: insert, remove, put back; the filter never says a false no; sums for error bars. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "hot.h"
#include "live_table.h"
#include "rng.h"
#include "unit_test.h"

struct hp_hot hp_hot = {.filter = 0};
static uint8_t no_filter[2 + HP_FILTER_SLACK] __attribute__((aligned(64)));

static int set_up(void **state) {
  (void)state;
  if (hp_hot.filter == 0) hp_hot.filter = (uintptr_t)hp_filter_place(no_filter, 1);
  return 0;
}

static uintptr_t address_of(uint64_t i) { return 0x7f0000000000u + i * 16; }
static struct hp_live_record record_of(uint64_t i) {
  return (struct hp_live_record){
      .address = address_of(i), .size_thread = (i * 3 + 1) << 16 | 5, .weight = 1.5f, .stack_id = (uint32_t)i};
}

static void random_operations_agree_with_a_plain_array(void **state) {
  (void)state;
  enum { SLOTS = 30000, STEPS = 600000 };
  static bool is_in[SLOTS];
  struct hp_rng rng = {5};
  uint64_t count = 0;
  for (int step = 0; step < STEPS; step++) {
    bool growing = step / 100000 % 2 == 0; /* up and down, so that pages and filters are replaced */
    uint64_t i = hp_rng_next(&rng) % SLOTS;
    struct hp_live_record out, r = record_of(i);
    if (is_in[i]) {
      assert_true(hp_filter_may_hold((void *)address_of(i)));
      if (growing && hp_rng_next(&rng) % 4 != 0) continue;
      assert_true(hp_live_table_remove(address_of(i), &out));
      assert_int_equal(out.size_thread, r.size_thread);
      assert_int_equal(out.stack_id, r.stack_id);
      is_in[i] = false;
      count--;
    } else if (growing) {
      assert_false(hp_live_table_remove(address_of(i), &out));
      assert_int_equal(hp_live_table_insert(&r, &out), HP_LIVE_INSERTED);
      is_in[i] = true;
      count++;
    }
    if (step % 50000 == 0) hp_live_table_reclaim((uint64_t)step);
  }
  assert_int_equal(hp_live_table_count(), count);
  struct hp_live_record out;
  for (uint64_t i = 0; i < SLOTS; i++) assert_int_equal(hp_live_table_remove(address_of(i), &out), is_in[i]);
  assert_int_equal(hp_live_table_count(), 0);
}

static void c4_an_address_that_is_there_is_replaced_and_given_out(void **state) {
  (void)state;
  struct hp_live_record a = record_of(1), b = record_of(1), out;
  b.stack_id = 77;
  assert_int_equal(hp_live_table_insert(&a, &out), HP_LIVE_INSERTED);
  assert_int_equal(hp_live_table_insert(&b, &out), HP_LIVE_INSERTED | HP_LIVE_REPLACED);
  assert_int_equal(out.stack_id, a.stack_id);
  assert_int_equal(hp_live_table_count(), 1);
  hp_live_table_test_limit(1);
  assert_int_equal(hp_live_table_insert(&a, &out), HP_LIVE_INSERTED | HP_LIVE_REPLACED); /* its place is free by then */
  assert_int_equal(out.stack_id, 77);
  struct hp_live_record c = record_of(2);
  assert_int_equal(hp_live_table_insert(&c, &out), 0);
  hp_live_table_test_limit(0);
  assert_true(hp_live_table_remove(a.address, &out));
}

static void c3_what_is_put_back_is_as_it_was(void **state) {
  (void)state;
  struct hp_live_record a = record_of(9), out, again;
  hp_live_table_insert(&a, &out);
  assert_true(hp_live_table_remove(a.address, &out));
  assert_true(hp_live_table_put_back(&out));
  assert_true(hp_filter_may_hold((void *)a.address));
  assert_true(hp_live_table_remove(a.address, &again));
  assert_memory_equal(&again, &out, offsetof(struct hp_live_record, time_seconds) + sizeof out.time_seconds);
}

static void c3_without_memory_put_back_says_so(void **state) {
  (void)state;
  struct hp_live_record taken = record_of(1000), out;
  hp_live_table_insert(&taken, &out);
  assert_true(hp_live_table_remove(taken.address, &taken));
  hp_memory_set_ceiling(1); /* no new page from here on */
  static uint64_t used[100000];
  uint64_t n = 0;
  for (uint64_t i = 2000; i < 102000; i++) { /* use up every free record */
    struct hp_live_record r = record_of(i);
    if (hp_live_table_insert(&r, &out) == HP_LIVE_INSERTED) used[n++] = i;
  }
  assert_true(n < 100000);
  assert_false(hp_live_table_put_back(&taken));
  assert_false(hp_live_table_remove(taken.address, &out));
  hp_memory_set_ceiling(SIZE_MAX);
  while (n > 0) assert_true(hp_live_table_remove(address_of(used[--n]), &out));
}

static void what_held_many_records_goes_when_they_are_gone(void **state) {
  (void)state;
  enum { MANY = 300000, KEPT_BYTES = 2 << 20 /* 64 shards with their first 512 places each */ };
  struct hp_live_record out;
  size_t before = hp_memory_used();
  for (uint64_t i = 0; i < MANY; i++) {
    struct hp_live_record r = record_of(i);
    assert_int_equal(hp_live_table_insert(&r, &out), HP_LIVE_INSERTED);
  }
  size_t full = hp_memory_used();
  assert_true(full > before + 4 * KEPT_BYTES);
  for (uint64_t i = 0; i < MANY; i++) assert_true(hp_live_table_remove(address_of(i), &out));
  hp_live_table_reclaim(1000000000); /* what was outgrown on the way; and the last, which is far too large now */
  hp_live_table_reclaim(1000000000 + 20);
  assert_true(hp_memory_used() < before + KEPT_BYTES);
  for (uint64_t i = 0; i < 1000; i++) { /* and the new filter knows what it has to */
    struct hp_live_record r = record_of(i);
    assert_int_equal(hp_live_table_insert(&r, &out), HP_LIVE_INSERTED);
    assert_true(hp_filter_may_hold((void *)r.address));
    assert_true(hp_live_table_remove(r.address, &out));
  }
}

static void variance_is_the_sum_of_s2_w_w_minus_1(void **state) {
  (void)state;
  struct hp_live_moments before, after;
  hp_live_table_moments(&before);
  struct hp_live_record out, a = {.address = 16, .size_thread = (uint64_t)1000 << 16, .weight = 20},
                             b = {.address = 32, .size_thread = (uint64_t)3 << 16, .weight = 1};
  hp_live_table_insert(&a, &out);
  hp_live_table_insert(&b, &out);
  hp_live_table_moments(&after);
  assert_int_equal(after.samples - before.samples, 2);
  assert_true(fabs(after.inuse_bytes_variance - before.inuse_bytes_variance - 1e6 * 20 * 19) < 1);
  assert_true(fabs(after.alloc_objects_variance - before.alloc_objects_variance - 20 * 19) < 1e-3);
  hp_live_table_remove(16, &out);
  hp_live_table_remove(32, &out);
  hp_live_table_moments(&after);
  assert_true(fabs(after.inuse_bytes_variance - before.inuse_bytes_variance) < 1);
  assert_true(fabs(after.alloc_bytes_variance - before.alloc_bytes_variance - 1e6 * 20 * 19) < 1);
}

enum { THREADS = 4, EACH = 100000 };
static void *own_addresses(void *argument) {
  uint64_t base = (uint64_t)(uintptr_t)argument * 1000000;
  for (uint64_t i = 0; i < EACH; i++) {
    struct hp_live_record out, r = record_of(base + i % 5000);
    if (i >= 5000) {
      if (!hp_filter_may_hold((void *)r.address) || !hp_live_table_remove(r.address, &out)) return (void *)1;
    }
    if (hp_live_table_insert(&r, &out) != HP_LIVE_INSERTED) return (void *)1;
  }
  for (uint64_t i = 0; i < 5000; i++) {
    struct hp_live_record out;
    if (!hp_filter_may_hold((void *)address_of(base + i)) || !hp_live_table_remove(address_of(base + i), &out))
      return (void *)1;
  }
  return NULL;
}

static void threads_find_what_they_put_in(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  void *failed, *any = NULL;
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, own_addresses, (void *)(i + 1));
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &failed);
    if (failed != NULL) any = failed;
  }
  assert_null(any);
  assert_int_equal(hp_live_table_count(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_operations_agree_with_a_plain_array),
                                     cmocka_unit_test(c4_an_address_that_is_there_is_replaced_and_given_out),
                                     cmocka_unit_test(c3_what_is_put_back_is_as_it_was),
                                     cmocka_unit_test(c3_without_memory_put_back_says_so),
                                     cmocka_unit_test(what_held_many_records_goes_when_they_are_gone),
                                     cmocka_unit_test(variance_is_the_sum_of_s2_w_w_minus_1),
                                     cmocka_unit_test(threads_find_what_they_put_in)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
