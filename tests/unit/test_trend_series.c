/* SPDX-License-Identifier: MIT
 * test_trend_series.c - profiles to series: stacks meet across dumps and address spaces, order is that of time, ages are
 * read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "profile_writer.h"
#include "trend_series.h"

#define DUMPS 12
#define START_NANOS INT64_C(1000000000000000000)
#define MINUTE_NANOS INT64_C(60000000000)

static char folder[] = "/tmp/test_trend_series.XXXXXX";
static char *paths[DUMPS];

/* Dump k: "leak" holds k*50 blocks of 1000 bytes, "keep" 40; loaded at another address each time. */
static void write_dump(int k, const char *path) {
  struct hp_profile *profile = hp_profile_new();
  hp_profile_append_type(profile, "inuse_objects", "count");
  hp_profile_append_type(profile, "inuse_space", "bytes");
  profile->period_type.type = hp_profile_intern(profile, "space");
  profile->period_type.unit = hp_profile_intern(profile, "bytes");
  profile->period = 1;
  profile->time_nanos = 1000000000000000000 + k * INT64_C(60000000000);
  uint64_t base = 0x10000000u + (uint64_t)k * 0x1000000u;
  struct hp_mapping mapping = {.start = base,
                               .limit = base + 0x100000,
                               .file = hp_profile_intern(profile, "/bin/app"),
                               .build_id = hp_profile_intern(profile, "abcdef")};
  hp_profile_append_mapping(profile, &mapping);
  uint32_t locations[3];
  const char *const names[] = {"leak", "keep", "main"};
  for (uint32_t i = 0; i < 3; i++) {
    struct hp_function function = {.name = hp_profile_intern(profile, names[i])};
    struct hp_line line = {.function = hp_profile_append_function(profile, &function)};
    struct hp_location location = {.address = base + 0x100 * (i + 1), .mapping = 0, .line_count = 1};
    location.first_line = hp_profile_append_line(profile, &line);
    locations[i] = hp_profile_append_location(profile, &location);
  }
  const char *const ages[] = {"<1m", "10m-1h"};
  for (uint32_t i = 0; i < 2 && k > 0; i++) { /* the leak in two rows, by age: they are one stack */
    hp_profile_append_sample(profile, (uint32_t[]){locations[0], locations[2]}, 2, (int64_t[]){25 * k, 25000 * k});
    struct hp_label label = {.key = hp_profile_intern(profile, "age"), .str = hp_profile_intern(profile, ages[i])};
    hp_profile_append_label(profile, &label);
  }
  hp_profile_append_sample(profile, (uint32_t[]){locations[1], locations[2]}, 2, (int64_t[]){40, 40000});
  struct hp_error error;
  assert_int_equal(hp_profile_write(path, profile, &error), 0);
  hp_profile_free(profile);
}

static int set_up(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  for (int k = 0; k < DUMPS; k++) {
    int at = (k * 5) % DUMPS; /* not in order of time */
    if (asprintf(&paths[at], "%s/%02d.pb.gz", folder, k) < 0) return -1;
    write_dump(k, paths[at]);
  }
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (int k = 0; k < DUMPS; k++) {
    unlink(paths[k]);
    free(paths[k]);
  }
  return rmdir(folder);
}

static void test_stacks_meet_and_the_leak_comes_first(void **state) {
  (void)state;
  struct hp_view_frames frames;
  struct hp_trend trend;
  struct hp_error error;
  hp_view_frames_init(&frames, false);
  assert_int_equal(hp_trend_build(paths, DUMPS, &(struct hp_trend_options){0}, &frames, &trend, &error), 0);
  assert_int_equal(trend.row_count, 2);
  assert_string_equal(trend.program, "/bin/app");
  for (int k = 0; k + 1 < DUMPS; k++) assert_true(trend.dumps[k].time_nanos < trend.dumps[k + 1].time_nanos);
  const struct hp_trend_row *leak = &trend.rows[0];
  assert_int_equal(leak->frame_count, 2);
  assert_string_equal(hp_view_text(&frames, frames.frames[trend.frame_list[leak->first_frame]].name), "leak");
  assert_string_equal(hp_view_text(&frames, frames.frames[trend.frame_list[leak->first_frame + 1]].name), "main");
  assert_string_equal(hp_view_text(&frames, frames.frames[trend.frame_list[leak->first_frame]].module), "app");
  for (size_t k = 0; k < DUMPS; k++) {
    assert_true(hp_trend_bytes(&trend, leak, k) == 50000.0 * (double)k);
    assert_true(hp_trend_bytes(&trend, &trend.rows[1], k) == 40000);
    assert_true(hp_trend_error(&trend, leak, k) == 0); /* every allocation was recorded */
  }
  assert_true(leak->fit.is_suspect);
  assert_false(trend.rows[1].fit.is_suspect);
  assert_string_equal(leak->age, "10m-1h");
  hp_trend_free(&trend);
  hp_view_frames_free(&frames);
}

static void expect_failure(char *const *files, size_t count, const struct hp_trend_options *options, const char *part) {
  struct hp_view_frames frames;
  struct hp_trend trend;
  struct hp_error error;
  hp_view_frames_init(&frames, false);
  assert_int_equal(hp_trend_build(files, count, options, &frames, &trend, &error), -1);
  assert_non_null(strstr(error.text, part));
  hp_view_frames_free(&frames);
}

static void test_what_cannot_be_done_is_said(void **state) {
  (void)state;
  struct hp_trend_options none = {0};
  expect_failure(paths, 2, &none, "at least 3");
  expect_failure((char *[]){paths[0], "/no/such/file", paths[1]}, 3, &none, "/no/such/file");
  expect_failure(paths, 3, &(struct hp_trend_options){.focus = "("}, "(");
}

/* The file of dump `minute`, at most DUMPS + 1 of a test: one stack with `blocks` live blocks of 1000 bytes, the start of its
 * process given. */
static char *write_simple(int minute, int64_t blocks, int64_t start_nanos) {
  struct hp_profile *profile = hp_profile_new();
  hp_profile_append_type(profile, "inuse_objects", "count");
  hp_profile_append_type(profile, "inuse_space", "bytes");
  hp_profile_append_comment(profile, "heapprof.version 0.1.0");
  profile->period_type.type = hp_profile_intern(profile, "space");
  profile->period_type.unit = hp_profile_intern(profile, "bytes");
  profile->period = 1;
  profile->time_nanos = START_NANOS + (minute + 1) * MINUTE_NANOS;
  profile->duration_nanos = profile->time_nanos - start_nanos;
  struct hp_function function = {.name = hp_profile_intern(profile, "leak")};
  struct hp_line line = {.function = hp_profile_append_function(profile, &function)};
  struct hp_location location = {.address = 0x100, .mapping = HP_NONE, .line_count = 1};
  location.first_line = hp_profile_append_line(profile, &line);
  uint32_t at = hp_profile_append_location(profile, &location);
  hp_profile_append_sample(profile, &at, 1, (int64_t[]){blocks, blocks * 1000});
  char *path;
  struct hp_error error;
  assert_true(asprintf(&path, "%s/simple.%02d.pb.gz", folder, minute) > 0);
  assert_int_equal(hp_profile_write(path, profile, &error), 0);
  hp_profile_free(profile);
  return path;
}

struct series {
  size_t dumps, processes, suspects;
  bool is_left_out;
};

/* A series of `count` dumps with these live blocks; the dumps from `restart` on are of another process. */
static struct series series_of(const int64_t *blocks, size_t count, size_t restart) {
  char *files[DUMPS + 1];
  assert_true(count <= DUMPS + 1);
  for (size_t i = 0; i < count; i++) files[i] = write_simple((int)i, blocks[i], i < restart ? START_NANOS : START_NANOS + 1);
  struct hp_view_frames frames;
  struct hp_trend trend;
  struct hp_error error;
  hp_view_frames_init(&frames, false);
  assert_int_equal(hp_trend_build(files, count, &(struct hp_trend_options){0}, &frames, &trend, &error), 0);
  struct series result = {trend.dump_count, trend.process_count, trend.rows[0].fit.is_suspect, trend.left_out != NULL};
  if (trend.left_out != NULL) assert_string_equal(trend.left_out->path, files[count - 1]);
  hp_trend_free(&trend);
  hp_view_frames_free(&frames);
  for (size_t i = 0; i < count; i++) {
    unlink(files[i]);
    free(files[i]);
  }
  return result;
}

static void test_a_dump_after_all_was_freed_does_not_hide_the_leak(void **state) {
  (void)state;
  int64_t blocks[DUMPS + 1];
  for (int i = 0; i < DUMPS; i++) blocks[i] = 100 + 50 * i;
  blocks[DUMPS] = 3;
  struct series series = series_of(blocks, DUMPS + 1, SIZE_MAX);
  assert_int_equal(series.dumps, DUMPS);
  assert_int_equal(series.suspects, 1);
  assert_true(series.is_left_out);
  blocks[DUMPS] = 100 + 50 * DUMPS; /* still all in use at the end */
  series = series_of(blocks, DUMPS + 1, SIZE_MAX);
  assert_int_equal(series.dumps, DUMPS + 1);
  assert_int_equal(series.suspects, 1);
}

static void test_a_series_that_shrinks_keeps_every_dump(void **state) {
  (void)state;
  assert_false(series_of((const int64_t[]){100, 70, 40, 10}, 4, SIZE_MAX).is_left_out);
  assert_false(series_of((const int64_t[]){1000, 400, 150, 60, 20}, 5, SIZE_MAX).is_left_out);
  assert_false(series_of((const int64_t[]){10, 500, 10, 500, 10}, 5, SIZE_MAX).is_left_out); /* up and down */
  assert_false(series_of((const int64_t[]){100, 110, 60}, 3, SIZE_MAX).is_left_out);
  assert_false(series_of((const int64_t[]){100, 110, 120, 1}, 4, 3).is_left_out); /* the start of the next process */
  assert_true(series_of((const int64_t[]){100, 110, 120, 1}, 4, SIZE_MAX).is_left_out);
}

static void test_processes_are_told_apart(void **state) {
  (void)state;
  const int64_t blocks[] = {100, 110, 120, 130};
  assert_int_equal(series_of(blocks, 4, SIZE_MAX).processes, 1);
  assert_int_equal(series_of(blocks, 4, 2).processes, 2);
}

static void test_focus_leaves_the_other_stacks_out(void **state) {
  (void)state;
  struct hp_view_frames frames;
  struct hp_trend trend;
  struct hp_error error;
  hp_view_frames_init(&frames, false);
  assert_int_equal(hp_trend_build(paths, DUMPS, &(struct hp_trend_options){.focus = "keep"}, &frames, &trend, &error), 0);
  assert_int_equal(trend.row_count, 1);
  hp_trend_free(&trend);
  hp_view_frames_free(&frames);
}

static void test_bytes_beyond_what_fits_are_the_nearest_that_do(void **unused) {
  (void)unused;
  double bytes[] = {0x1p63, -0x1p64, 41.5};
  struct hp_trend_dump dump = {.bytes = bytes, .filled = 3};
  struct hp_trend trend = {.dumps = &dump, .dump_count = 1};
  static const int64_t expected[] = {INT64_MAX, INT64_MIN, 41, 0};
  for (size_t i = 0; i < 4; i++)
    assert_true(hp_trend_whole_bytes(&trend, &(struct hp_trend_row){.stack = i}, 0) == expected[i]);
}

static void test_ages_are_read(void **state) {
  (void)state;
  assert_int_equal(hp_trend_parse_age("90s"), 90000000000);
  assert_int_equal(hp_trend_parse_age("10m-1h"), 600000000000);
  assert_int_equal(hp_trend_parse_age("1-10s"), 1000000000);
  assert_int_equal(hp_trend_parse_age(">=1h"), 3600000000000);
  assert_int_equal(hp_trend_parse_age("2min"), 120000000000);
  assert_int_equal(hp_trend_parse_age("<1m"), 0);
  assert_int_equal(hp_trend_parse_age("old"), -1);
  assert_int_equal(hp_trend_parse_age(""), -1);
  assert_int_equal(hp_trend_parse_age("9999999999999999999d"), -1);
  assert_int_equal(hp_trend_parse_age("106752d"), -1);
  assert_int_equal(hp_trend_parse_age("106751d"), 106751 * INT64_C(86400000000000));
  assert_int_equal(hp_trend_parse_age("5 parsecs"), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stacks_meet_and_the_leak_comes_first),
      cmocka_unit_test(test_what_cannot_be_done_is_said),
      cmocka_unit_test(test_a_dump_after_all_was_freed_does_not_hide_the_leak),
      cmocka_unit_test(test_a_series_that_shrinks_keeps_every_dump),
      cmocka_unit_test(test_processes_are_told_apart),
      cmocka_unit_test(test_focus_leaves_the_other_stacks_out),
      cmocka_unit_test(test_bytes_beyond_what_fits_are_the_nearest_that_do),
      cmocka_unit_test(test_ages_are_read),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
