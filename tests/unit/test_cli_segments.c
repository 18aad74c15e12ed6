/* SPDX-License-Identifier: MIT
 * test_cli_segments.c - linked addresses (src/cli/segment_address.h), on the segments that real linkers made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above */
#include <cmocka.h>

#include "segment_address.h"

/* A library with a function in a second segment with code (gcc, section "awx"): GNU ld, gold, lld. */
static const struct hp_segment bfd[] = {{0, 0, 0x4b8, 4096, false},
                                        {0x1000, 0x1000, 0x12d, 4096, true},
                                        {0x2000, 0x2000, 0xbc, 4096, false},
                                        {0x2df8, 0x3df8, 0x248, 4096, true}};
static const struct hp_segment gold[] = {{0, 0, 0x708, 4096, true}, {0xdc8, 0x1dc8, 0x280, 4096, true}};
static const struct hp_segment lld[] = {
    {0, 0, 0x104bc, 4096, false}, {0x104bc, 0x114bc, 0x380d4, 4096, true}, {0x48590, 0x4a590, 0x2a70, 4096, true}};

enum { START = 0x7f0000000000 / 4096 };
#define AT(distance) (((uint64_t)START * 4096) + (distance))

static uint64_t find(const struct hp_segment *segments, size_t count, uint64_t distance, uint64_t offset) {
  return hp_segments_find(segments, count, &(struct hp_symbol_place){AT(distance), AT(0), offset});
}

static void test_a_mapping_of_one_segment(void **unused) {
  (void)unused;
  assert_int_equal(find(bfd, 4, 0x116, 0x1000), 0x1116);
  assert_int_equal(find(bfd, 4, 0x1d + 0x1000, 0x2000), 0x401d); /* its page is the third's last */
  assert_int_equal(find(gold, 2, 0x100, 0), 0x100);
  assert_int_equal(find(gold, 2, 0xfe7, 0), 0x1fe7); /* both begin in the file's first page */
  assert_int_equal(find(lld, 3, 0x5ab, 0x10000), 0x115ab);
  assert_int_equal(find(lld, 3, 0x600, 0x48000), 0x4a600);
}

static void test_a_mapping_of_the_whole_module(void **unused) {
  (void)unused;
  assert_int_equal(find(bfd, 4, 0x401d - 0x1000, 0x1000), 0x401d);
  assert_int_equal(find(bfd, 4, 0x1116, 0), 0x1116);
  assert_int_equal(find(bfd, 4, 0x401d, 0), 0x401d);
  assert_int_equal(find(gold, 2, 0x1fe7, 0), 0x1fe7);
  assert_int_equal(find(lld, 3, 0x4a600 - 0x11000, 0x10000), 0x4a600);
}

static void test_a_mapping_that_fits_nothing_leaves_the_address(void **unused) {
  (void)unused;
  assert_int_equal(find(bfd, 4, 0x10, 0x9000), AT(0x10));
  assert_int_equal(find(bfd, 4, 0x900000, 0x1000), AT(0x900000));
  assert_int_equal(find(NULL, 0, 5, 0), AT(5));
  assert_int_equal(hp_segments_find(bfd, 4, &(struct hp_symbol_place){0x1116, 0, 0}), 0x1116); /* not relocated at all */
  assert_int_equal(hp_segments_find(bfd, 4, &(struct hp_symbol_place){0, UINT64_MAX, UINT64_MAX}), 0);
}

static void expect_placed(const struct hp_segment *original, size_t count) {
  struct hp_segment bare[4];
  for (size_t i = 0; i < count; i++) {
    bare[i] = original[i];
    if (i != 0) bare[i].offset = 0x777; /* what a debug file says means nothing */
  }
  hp_segments_place(bare, count);
  for (size_t i = 0; i < count; i++) assert_int_equal(bare[i].offset, original[i].offset);
}

static void test_offsets_are_found_again(void **unused) {
  (void)unused;
  expect_placed(bfd, 4);
  expect_placed(gold, 2);
  expect_placed(lld, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_mapping_of_one_segment),
      cmocka_unit_test(test_a_mapping_of_the_whole_module),
      cmocka_unit_test(test_a_mapping_that_fits_nothing_leaves_the_address),
      cmocka_unit_test(test_offsets_are_found_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
