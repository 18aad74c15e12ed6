/* SPDX-License-Identifier: MIT
 * test_rule_cache.c - what is put in is found, under the whole pc and only there; an unload in between keeps it out. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rng.h"
#include "rule_cache.h"

enum { MANY = 60000, THREADS = 3, THREAD_KEYS = 4000 };

static uint64_t find(uintptr_t key) {
  const struct hp_rule_table *table = hp_rule_table_load();
  size_t index = hp_rule_index(key, table->index_mask);
  uint64_t entry = hp_load_relaxed(&table->first[index]);
  if (!hp_rule_matches(entry, key)) entry = hp_load_relaxed(&table->second[index]);
  return hp_rule_matches(entry, key) ? entry & ~HP_RULE_TAG_MASK : 0;
}

static void insert(uintptr_t key, uint64_t rule) { hp_rule_cache_insert(key, rule, hp_rule_cache_generation()); }

static const uint64_t some_rule = (uint64_t)8 << HP_RULE_CFA_SHIFT;
enum { KEY = 0x7F1234567890 };

static void test_empty_cache_finds_nothing(void **state) {
  (void)state;
  assert_true(hp_rule_table_is_empty(hp_rule_table_load()));
  assert_int_equal(find(KEY), 0);
}

static void test_key_is_compared_whole(void **state) {
  (void)state;
  insert(KEY, some_rule);
  assert_int_equal(find(KEY), some_rule);
  for (int bit = HP_PC_SHIFT; bit < 64; bit++) assert_int_equal(find(KEY ^ (uintptr_t)1 << bit), 0);
}

static void test_keys_of_one_index_have_two_places(void **state) {
  (void)state;
  hp_rule_cache_flush(0);
  insert(KEY, some_rule);
  insert(KEY + 0x1000000, some_rule * 2);
  assert_int_equal(find(KEY), some_rule);
  assert_int_equal(find(KEY + 0x1000000), some_rule * 2);
  insert(KEY + 0x2000000, some_rule * 3);
  assert_int_equal(find(KEY + 0x2000000), some_rule * 3);
}

static void test_impossible_keys_are_not_kept(void **state) {
  (void)state;
  const uintptr_t keys[] = {0, 1, 4095, (uintptr_t)1 << HP_PC_BITS, UINTPTR_MAX};
  for (size_t i = 0; i < HP_ARRAY_LENGTH(keys); i++) {
    insert(keys[i], some_rule);
    assert_int_equal(find(keys[i]), 0);
  }
}

static void test_cache_grows_with_what_is_in_use(void **state) {
  (void)state;
  struct hp_rng rng = {5};
  size_t before = hp_rule_cache_bytes();
  for (int i = 0; i < MANY; i++) insert(0x7F0000000000 + (hp_rng_next(&rng) & 0xFFFFFF) * HP_PC_STEP, some_rule);
  assert_true(hp_rule_cache_bytes() > 2 * before);
  size_t found = 0;
  rng.state = 5;
  for (int i = 0; i < MANY; i++) found += find(0x7F0000000000 + (hp_rng_next(&rng) & 0xFFFFFF) * HP_PC_STEP) == some_rule;
  assert_true(found > MANY / 2);
  assert_true(hp_rule_cache_bytes() < 4 << 20);
}

static void test_flush_forgets_and_late_inserts_are_refused(void **state) {
  (void)state;
  uint32_t generation = hp_rule_cache_generation();
  insert(KEY, some_rule);
  hp_rule_cache_flush(0);
  assert_int_equal(find(KEY), 0);
  hp_rule_cache_insert(KEY, some_rule, generation); /* read before the flush */
  assert_int_equal(find(KEY), 0);
  insert(KEY, some_rule);
  assert_int_equal(find(KEY), some_rule);
}

static void test_nothing_is_kept_or_found_during_an_unload(void **state) {
  (void)state;
  insert(KEY, some_rule);
  hp_rule_cache_suspend();
  assert_true(hp_rule_table_is_empty(hp_rule_table_load()));
  insert(KEY + 1 * HP_PC_STEP, some_rule);
  assert_int_equal(find(KEY), 0);
  hp_rule_cache_suspend(); /* another thread's */
  hp_rule_cache_resume(0);
  assert_true(hp_rule_table_is_empty(hp_rule_table_load()));
  insert(KEY + 1 * HP_PC_STEP, some_rule);
  hp_rule_cache_resume(0);
  assert_false(hp_rule_table_is_empty(hp_rule_table_load()));
  assert_int_equal(find(KEY + 1 * HP_PC_STEP), 0);
}

static void test_only_a_death_empties_the_cache(void **state) {
  (void)state;
  uint32_t generation = hp_rule_cache_generation();
  insert(KEY, some_rule);
  hp_rule_cache_suspend();
  hp_rule_cache_resume(0);
  assert_int_equal(find(KEY), some_rule);
  assert_int_equal(hp_rule_cache_generation(), generation);
  hp_rule_cache_suspend();
  hp_rule_cache_resume(1);
  assert_int_equal(find(KEY), 0);
  insert(KEY, some_rule);
  hp_rule_cache_suspend();
  hp_rule_cache_resume(1);
  assert_int_equal(find(KEY), some_rule);
  assert_int_not_equal(hp_rule_cache_generation(), generation);
}

static uint64_t wrong_rules;

/* Each key has a rule that follows from it: any other answer is a torn or misplaced entry. */
static void *insert_and_find(void *seed) {
  struct hp_rng rng = {(uintptr_t)seed};
  for (int i = 0; i < THREAD_KEYS * 50; i++) {
    uintptr_t key = 0x7E0000000000 + (hp_rng_next(&rng) % THREAD_KEYS) * 4096 * 3 + 4;
    uint64_t rule = (uint64_t)(key / 4096 % 1000 + 1) << HP_RULE_CFA_SHIFT;
    uint64_t found = find(key);
    if (found != 0 && found != rule) hp_add_relaxed(&wrong_rules, 1);
    if (found == 0) insert(key, rule);
    if (i % 5000 == 0) hp_rule_cache_flush(0);
  }
  return NULL;
}

static void test_readers_never_see_half_an_entry(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, insert_and_find, (void *)(i + 1));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong_rules, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_empty_cache_finds_nothing),
      cmocka_unit_test(test_key_is_compared_whole),
      cmocka_unit_test(test_keys_of_one_index_have_two_places),
      cmocka_unit_test(test_impossible_keys_are_not_kept),
      cmocka_unit_test(test_cache_grows_with_what_is_in_use),
      cmocka_unit_test(test_flush_forgets_and_late_inserts_are_refused),
      cmocka_unit_test(test_nothing_is_kept_or_found_during_an_unload),
      cmocka_unit_test(test_only_a_death_empties_the_cache),
      cmocka_unit_test(test_readers_never_see_half_an_entry),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
