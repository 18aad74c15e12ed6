/* SPDX-License-Identifier: MIT
 * test_export_tables.c - the small tables an encode is made with: UTF-8, strings by number, pairs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export_test.h"
#include "fake_memory.h"
#include "pair_map.h"
#include "string_interner.h"
#include "utf8.h"

static struct hp_arena arena;

static int setup(void **state) {
  (void)state;
  fake_memory_fail_at(0);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  hp_arena_reset(&arena);
  return 0;
}

/* Unicode's definition, the slow way: decode and encode again. */
static bool is_one_code_point(const unsigned char *bytes, size_t n) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t code = n == 1 ? bytes[0] : bytes[0] & (0x7Fu >> n);
  bool is_lead = n == 1 ? bytes[0] < 0x80 : (unsigned char)(bytes[0] >> (7 - n)) == (unsigned char)((1u << (n + 1)) - 2);
  for (size_t i = 1; i < n; i++) {
    if ((bytes[i] & 0xC0) != 0x80) return false;
    code = code << 6 | (bytes[i] & 0x3Fu);
  }
  return is_lead && code >= least[n] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

static void test_utf8_of_every_two_and_three_bytes_is_as_unicode_says(void **state) {
  (void)state;
  for (unsigned word = 0; word < 1u << 24; word++) {
    unsigned char bytes[3] = {(unsigned char)(word >> 16), (unsigned char)(word >> 8), (unsigned char)word};
    if (bytes[0] < 0x80) continue; /* one byte, then less than three: the other words say it all */
    bool is_three = is_one_code_point(bytes, 3);
    bool is_two = is_one_code_point(bytes, 2);
    size_t want = is_three ? 3 : is_two ? (bytes[2] < 0x80 ? 3 : 2) : 0;
    if (hp_utf8_valid_prefix((const char *)bytes, 3) != want) fail_msg("%06x", word);
  }
}

static void test_utf8_of_four_bytes_has_its_ends(void **state) {
  (void)state;
  const struct {
    const char *bytes;
    size_t want;
  } cases[] = {{"\xF0\x90\x80\x80", 4}, {"\xF0\x8F\xBF\xBF", 0}, {"\xF4\x8F\xBF\xBF", 4}, {"\xF4\x90\x80\x80", 0},
               {"\xF5\x80\x80\x80", 0}, {"\xF1\x80\x80", 0},     {"\xF1\x80\x80\x41", 0}, {"\xF1\x80\x41\x80", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(hp_utf8_valid_prefix(cases[i].bytes, strlen(cases[i].bytes)), cases[i].want);
  }
}

static void test_utf8_prefix_ends_at_any_place_of_a_long_text(void **state) {
  (void)state;
  char text[64];
  for (size_t bad = 0; bad < sizeof text; bad++) {
    memset(text, 'a', sizeof text);
    text[bad] = '\x80';
    assert_int_equal(hp_utf8_valid_prefix(text, sizeof text), bad);
  }
}

static void test_clean_text_is_valid_whatever_it_was(void **state) {
  (void)state;
  size_t n;
  const char bytes[] = "a\xC3(\xE2\x82\0z\xFF";
  const char *clean = hp_utf8_clean(&arena, bytes, sizeof bytes - 1, &n);
  const char want[] = "a\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\0z\xEF\xBF\xBD";
  assert_int_equal(n, sizeof want - 1);
  assert_memory_equal(clean, want, sizeof want);
  assert_int_equal(hp_utf8_valid_prefix(clean, n), n);
}

static void test_equal_strings_share_a_number_in_order_of_arrival(void **state) {
  (void)state;
  struct hp_string_interner interner = {.arena = &arena};
  char text[32];
  assert_int_equal(hp_string_interner_count(&interner), 1);
  assert_int_equal(hp_string_interner_add(&interner, "", 0, true), 0);
  for (int round = 0; round < 2; round++) {
    for (unsigned i = 1; i < 5000; i++) {
      size_t n = (size_t)snprintf(text, sizeof text, "string %u", i);
      assert_int_equal(hp_string_interner_add(&interner, text, n, false), i);
    }
  }
  assert_int_equal(hp_string_interner_count(&interner), 5000);
  size_t n;
  assert_string_equal(hp_string_interner_get(&interner, 4711, &n), "string 4711");
  assert_int_equal(n, 11);
  assert_string_equal(hp_string_interner_get(&interner, 0, &n), "");
  assert_int_equal(n, 0);
}

static void test_long_strings_are_cut_between_code_points(void **state) {
  (void)state;
  struct hp_string_interner interner = {.arena = &arena};
  static char text[2 * HP_STRING_BYTES_MAX];
  for (size_t shift = 0; shift < 3; shift++) {
    memset(text, 'a', shift);
    for (size_t i = shift; i + 3 <= sizeof text; i += 3) memcpy(text + i, "\xE2\x82\xAC", 3);
    uint32_t id = hp_string_interner_add(&interner, text, sizeof text - 4, false);
    size_t n;
    const char *got = hp_string_interner_get(&interner, id, &n);
    assert_in_range(n, HP_STRING_BYTES_MAX - 3, HP_STRING_BYTES_MAX);
    assert_int_equal(hp_utf8_valid_prefix(got, n), n);
    assert_int_equal(strlen(got), n);
  }
}

static void test_borrowed_strings_are_not_copied(void **state) {
  (void)state;
  struct hp_string_interner interner = {.arena = &arena};
  static const char text[] = "constant";
  size_t n;
  uint32_t id = hp_string_interner_add(&interner, text, sizeof text - 1, true);
  assert_ptr_equal(hp_string_interner_get(&interner, id, &n), text);
}

static void test_interner_without_memory_says_so_and_stays_whole(void **state) {
  (void)state;
  struct hp_string_interner interner = {.arena = &arena};
  static char text[HP_STRING_BYTES_MAX];
  fake_memory_fail_at(3);
  unsigned stored = 0;
  for (;; stored++) {
    memset(text, 'x', sizeof text);
    memcpy(text, &stored, sizeof stored);
    for (size_t i = 0; i < sizeof stored; i++) text[i] = (char)('a' + (stored >> (4 * i) & 15));
    if (hp_string_interner_add(&interner, text, sizeof text, false) == HP_STRING_NONE) break;
  }
  assert_true(stored > 10);
  assert_int_equal(hp_string_interner_count(&interner), stored + 1);
  fake_memory_fail_at(0);
  assert_int_equal(hp_string_interner_add(&interner, text, sizeof text, false), stored + 1);
}

static void test_pairs_are_found_and_others_are_not(void **state) {
  (void)state;
  struct hp_pair_map map = {.arena = &arena};
  assert_int_equal(hp_pair_map_get(&map, 0, 0), 0);
  for (uint32_t i = 0; i < 20000; i++) assert_true(hp_pair_map_put(&map, (uint64_t)(i / 4) << (i % 3 * 16), i % 4, i + 1));
  for (uint32_t i = 0; i < 20000; i++) {
    /* The first of equal pairs answers; there are some, the key repeats. */
    uint32_t got = hp_pair_map_get(&map, (uint64_t)(i / 4) << (i % 3 * 16), i % 4);
    assert_in_range(got, 1, i + 1);
  }
  assert_int_equal(hp_pair_map_get(&map, 1, 77), 0);
  assert_int_equal(hp_pair_map_get(&map, UINT64_MAX, 0), 0);
}

static void test_pairs_differ_by_either_half(void **state) {
  (void)state;
  struct hp_pair_map map = {.arena = &arena};
  for (uint32_t b = 0; b < 100; b++) {
    for (uint64_t a = 0; a < 100; a++) assert_true(hp_pair_map_put(&map, a << 32, b, (uint32_t)(b * 100 + a + 1)));
  }
  for (uint32_t b = 0; b < 100; b++) {
    for (uint64_t a = 0; a < 100; a++) assert_int_equal(hp_pair_map_get(&map, a << 32, b), b * 100 + a + 1);
  }
}

static void test_pair_map_without_memory_keeps_what_it_has(void **state) {
  (void)state;
  struct hp_pair_map map = {.arena = &arena};
  uint32_t stored = 0;
  fake_memory_fail_at(4);
  while (hp_pair_map_put(&map, stored, 0, stored + 1)) stored++;
  fake_memory_fail_at(0);
  for (uint32_t i = 0; i < stored; i++) assert_int_equal(hp_pair_map_get(&map, i, 0), i + 1);
  assert_int_equal(hp_pair_map_get(&map, stored, 0), 0);
  assert_true(hp_pair_map_put(&map, stored, 0, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_utf8_of_every_two_and_three_bytes_is_as_unicode_says, setup, teardown),
      cmocka_unit_test_setup_teardown(test_utf8_of_four_bytes_has_its_ends, setup, teardown),
      cmocka_unit_test_setup_teardown(test_utf8_prefix_ends_at_any_place_of_a_long_text, setup, teardown),
      cmocka_unit_test_setup_teardown(test_clean_text_is_valid_whatever_it_was, setup, teardown),
      cmocka_unit_test_setup_teardown(test_equal_strings_share_a_number_in_order_of_arrival, setup, teardown),
      cmocka_unit_test_setup_teardown(test_long_strings_are_cut_between_code_points, setup, teardown),
      cmocka_unit_test_setup_teardown(test_borrowed_strings_are_not_copied, setup, teardown),
      cmocka_unit_test_setup_teardown(test_interner_without_memory_says_so_and_stays_whole, setup, teardown),
      cmocka_unit_test_setup_teardown(test_pairs_are_found_and_others_are_not, setup, teardown),
      cmocka_unit_test_setup_teardown(test_pairs_differ_by_either_half, setup, teardown),
      cmocka_unit_test_setup_teardown(test_pair_map_without_memory_keeps_what_it_has, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
