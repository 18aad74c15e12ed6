/* SPDX-License-Identifier: MIT
 * test_labels.c - keys of labels, and the bound on their number. */
#include <stdio.h>
#include <sys/prctl.h>

#include "hot.h"
#include "labels.h"
#include "recorder.h"
#include "unit_test.h"

struct hp_hot hp_hot;

static void small_sizes_are_exact_and_large_ones_eight_a_doubling(void **state) {
  (void)state;
  for (uint64_t n = 0; n <= 1024; n++) assert_int_equal(hp_labels_size_class(n), n);
  uint64_t last = 1024, steps = 0;
  for (uint64_t n = 1025; n < 1 << 20; n++) {
    uint64_t c = hp_labels_size_class(n);
    assert_true(c <= n && c > n - n / 8 - 1 && c >= last);
    steps += c != last;
    last = c;
  }
  assert_int_equal(steps, 10 * 8 - 1);
}

static void only_the_labels_asked_for_are_in_the_key(void **state) {
  (void)state;
  prctl(PR_SET_NAME, "first");
  assert_int_equal(hp_labels_key(0, 5), 0);
  assert_int_equal(hp_labels_key(HP_LABEL_SIZE, 0), 1 << 16);
  uint64_t thread = hp_labels_key(HP_LABEL_THREAD, 5);
  assert_true(thread > 0 && thread < 1 << 16);
  assert_int_equal(hp_labels_key(HP_LABEL_THREAD | HP_LABEL_SIZE, 5), 6 << 16 | thread);
  assert_string_equal(hp_labels_thread_name((uint16_t)thread), "first");
  prctl(PR_SET_NAME, "second"); /* it may be renamed at any time */
  assert_int_not_equal(hp_labels_key(HP_LABEL_THREAD, 5), thread);
  prctl(PR_SET_NAME, "first");
  assert_int_equal(hp_labels_key(HP_LABEL_THREAD, 5), thread);
}

static void names_past_the_limit_are_other(void **state) {
  (void)state;
  char name[16];
  for (int i = 0; i < 2000; i++) {
    snprintf(name, sizeof name, "t%d", i);
    prctl(PR_SET_NAME, name);
    uint64_t id = hp_labels_key(HP_LABEL_THREAD, 0);
    assert_true(id < HP_LABEL_NAMES);
    assert_string_equal(hp_labels_thread_name((uint16_t)id), id == 0 ? "[other]" : name);
    assert_int_equal(id == 0, i >= HP_LABEL_NAMES - 1 - 2);
  }
  assert_string_equal(hp_labels_thread_name(0xFFFF), "[other]");
}

static void each_age_has_the_words_of_its_bucket(void **state) {
  (void)state;
  const struct {
    uint32_t seconds;
    const char *words;
  } ages[] = {{0, "<1s"},       {1, "1s-10s"},   {9, "1s-10s"},       {10, "10s-1m"},  {59, "10s-1m"},
              {60, "1m-10m"},   {600, "10m-1h"}, {3599, "10m-1h"},    {3600, "1h-6h"}, {6 * 3600, "6h-1d"},
              {86399, "6h-1d"}, {86400, ">=1d"}, {UINT32_MAX, ">=1d"}};
  for (size_t i = 0; i < HP_ARRAY_LENGTH(ages); i++) {
    assert_true(hp_labels_age_bucket(ages[i].seconds) < HP_LABEL_AGES);
    assert_string_equal(hp_labels_age_name(hp_labels_age_bucket(ages[i].seconds)), ages[i].words);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_sizes_are_exact_and_large_ones_eight_a_doubling),
                                     cmocka_unit_test(only_the_labels_asked_for_are_in_the_key),
                                     cmocka_unit_test(names_past_the_limit_are_other),
                                     cmocka_unit_test(each_age_has_the_words_of_its_bucket)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
