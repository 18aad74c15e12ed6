/* SPDX-License-Identifier: MIT
 * test_format.c - text into a bounded buffer, against snprintf. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "unit_test.h"

#define SAME(...)                                  \
  do {                                             \
    char got_[200], want_[200];                    \
    struct hp_text text_;                          \
    hp_text_init(&text_, got_, sizeof got_);       \
    hp_text_add(&text_, __VA_ARGS__);              \
    snprintf(want_, sizeof want_, __VA_ARGS__);    \
    assert_string_equal(got_, want_);              \
    assert_int_equal(text_.length, strlen(want_)); \
    assert_false(text_.is_cut);                    \
  } while (0)

static void conversions_are_those_of_printf(void **state) {
  (void)state;
  SAME("plain %% text");
  SAME("%s|%.*s|%c", "word", 3, "abcdef", 'x');
  SAME("%d %d %d", 0, INT_MIN, INT_MAX);
  SAME("%u %ld %lu", UINT_MAX, LONG_MIN, ULONG_MAX);
  SAME("%lld %llu %zu", LLONG_MIN, ULLONG_MAX, (size_t)-1);
  SAME("%x %lx %lx", 0xabcdefu, 0ul, ULONG_MAX);
  SAME("%02u:%02u", 7u, 123u);
}

static void what_does_not_fit_is_cut_and_said(void **state) {
  (void)state;
  for (size_t capacity = 1; capacity < 12; capacity++) {
    char bytes[16];
    memset(bytes, '#', sizeof bytes);
    struct hp_text text;
    hp_text_init(&text, bytes, capacity);
    hp_text_add(&text, "%s%d", "abcdef", 12345);
    assert_int_equal(strlen(bytes), capacity - 1 < 11 ? capacity - 1 : 11);
    assert_memory_equal(bytes, "abcdef12345", strlen(bytes));
    assert_int_equal(text.is_cut, capacity < 12);
    assert_int_equal(bytes[capacity], '#');
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(conversions_are_those_of_printf),
                                     cmocka_unit_test(what_does_not_fit_is_cut_and_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
