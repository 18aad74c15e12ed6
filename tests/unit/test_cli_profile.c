/* SPDX-License-Identifier: MIT
 * test_cli_profile.c - the model, its reader and writer, sums and differences, and reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
/* after the above */
#include <cmocka.h>

#include "frame_filter.h"
#include "merge.h"
#include "profile_reader.h"
#include "profile_writer.h"
#include "report.h"

static uint32_t add_function(struct hp_profile *p, const char *name, const char *file) {
  struct hp_function function = {.name = hp_profile_intern(p, name), .file = hp_profile_intern(p, file)};
  return hp_profile_intern_function(p, &function);
}

/* A location with one line for each function given (innermost first); HP_NONE ends the list. */
static uint32_t add_location(struct hp_profile *p, uint64_t address, uint32_t inner, uint32_t outer, int64_t line) {
  struct hp_location location = {
      .address = address, .mapping = 0, .first_line = (uint32_t)p->line_count, .line_count = outer == HP_NONE ? 1 : 2};
  hp_profile_append_line(p, &(struct hp_line){inner, line, 0});
  if (outer != HP_NONE) hp_profile_append_line(p, &(struct hp_line){outer, line + 100, 0});
  return hp_profile_append_location(p, &location);
}

static void add_sample(struct hp_profile *p, const uint32_t *stack, size_t depth, int64_t objects, int64_t bytes) {
  hp_profile_append_sample(p, stack, depth, (int64_t[]){objects, bytes});
}

/* main -> outer (inlined: inner) -> leaf, loaded at `base`; two stacks, one of them recursive. */
static struct hp_profile *sample_profile(uint64_t base, int64_t factor) {
  struct hp_profile *p = hp_profile_new();
  hp_profile_append_type(p, "inuse_objects", "count");
  hp_profile_append_type(p, "inuse_space", "bytes");
  p->period_type = (struct hp_value_type){hp_profile_intern(p, "space"), hp_profile_intern(p, "bytes")};
  p->period = 1;
  p->time_nanos = 1000 * factor;
  p->duration_nanos = 10;
  struct hp_mapping mapping = {.start = base, .limit = base + 0x1000, .offset = 0x1000};
  mapping.file = hp_profile_intern(p, "/bin/app");
  mapping.build_id = hp_profile_intern(p, "abcd");
  hp_profile_append_mapping(p, &mapping);
  uint32_t leaf = add_function(p, "leaf", "a.c"), inner = add_function(p, "inner", "a.c");
  uint32_t outer = add_function(p, "outer", "b.c"), top = add_function(p, "main", "b.c");
  uint32_t at_leaf = add_location(p, base + 0x10, leaf, HP_NONE, 1),
           at_outer = add_location(p, base + 0x20, inner, outer, 2);
  uint32_t at_main = add_location(p, base + 0x30, top, HP_NONE, 3);
  add_sample(p, (uint32_t[]){at_leaf, at_outer, at_main}, 3, 1 * factor, 100 * factor);
  add_sample(p, (uint32_t[]){at_outer, at_outer, at_main}, 3, 2 * factor, 30 * factor);
  hp_profile_append_label(p, &(struct hp_label){.key = hp_profile_intern(p, "age"), .str = hp_profile_intern(p, "old")});
  hp_profile_append_comment(p, "common");
  hp_profile_append_comment(p, factor == 1 ? "one" : "other");
  return p;
}

static struct hp_profile *read_back(const struct hp_profile *p) {
  void *bytes;
  size_t length;
  struct hp_profile *again = NULL;
  assert_int_equal(hp_profile_write_memory(p, &bytes, &length, NULL), 0);
  assert_int_equal(hp_profile_read_memory("test", bytes, length, &again, NULL), 0);
  free(bytes);
  return again;
}

static void test_what_is_written_reads_back_the_same(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1), *q = read_back(p);
  assert_int_equal(q->sample_count, 2);
  assert_int_equal(q->type_count, 2);
  assert_int_equal(q->period, 1);
  assert_int_equal(q->time_nanos, 1000);
  assert_string_equal(hp_profile_text(q, q->types[1].type), "inuse_space");
  assert_memory_equal(q->values, p->values, 4 * sizeof(int64_t));
  assert_memory_equal(q->stack_locations, p->stack_locations, 6 * sizeof(uint32_t));
  assert_int_equal(q->locations[1].line_count, 2);
  assert_int_equal(q->locations[2].address, 0x400030);
  assert_string_equal(hp_profile_text(q, q->functions[q->lines[2].function].name), "outer");
  assert_string_equal(hp_profile_text(q, q->mappings[0].build_id), "abcd");
  assert_string_equal(hp_profile_text(q, q->labels[0].str), "old");
  assert_int_equal(q->samples[0].label_count, 0);
  assert_int_equal(q->samples[1].label_count, 1);
  assert_string_equal(hp_profile_text(q, q->comments[1]), "one");
  hp_profile_free(p);
  hp_profile_free(q);
}

static const struct hp_report_row *row(const struct hp_report *report, const char *function) {
  for (size_t i = 0; i < report->row_count; i++)
    if (strcmp(report->rows[i].function, function) == 0) return &report->rows[i];
  fail_msg("no row %s", function);
  return NULL;
}

static void check_row(const struct hp_report *report, const char *function, int64_t flat, int64_t cum) {
  assert_int_equal(row(report, function)->flat, flat);
  assert_int_equal(row(report, function)->cum, cum);
}

static struct hp_report report_of(const struct hp_profile *p, struct hp_report_options options) {
  struct hp_report report;
  struct hp_error error;
  if (hp_report_build(p, &options, &report, &error) != 0) fail_msg("%s", error.text);
  return report;
}

static void test_report_counts_inlined_frames_and_recursion_once(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1);
  struct hp_report report = report_of(p, (struct hp_report_options){.edges = true});
  assert_int_equal(report.total, 130);
  check_row(&report, "leaf", 100, 100);
  check_row(&report, "inner", 30, 130);
  check_row(&report, "outer", 0, 130);
  check_row(&report, "main", 0, 130);
  assert_string_equal(report.rows[0].function, "leaf");
  size_t count;
  const uint32_t *callers = hp_report_callers(&report, (uint32_t)(row(&report, "inner") - report.rows), &count);
  assert_int_equal(count, 1); /* outer, twice in the recursive stack but counted once */
  assert_int_equal(report.edges[callers[0]].value, 130);
  assert_string_equal(report.rows[report.edges[callers[0]].caller].function, "outer");
  hp_report_free(&report);
  hp_profile_free(p);
}

static uint32_t random_below(uint32_t bound) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state % bound);
}

/* Few functions and small values, so that figures are often equal, rows come to 0, and stacks recur; some frames have no name, some
 * names are there twice. */
static struct hp_profile *random_profile(bool has_negative) {
  struct hp_profile *p = hp_profile_new();
  hp_profile_append_type(p, "inuse_objects", "count");
  hp_profile_append_type(p, "inuse_space", "bytes");
  p->period_type = (struct hp_value_type){hp_profile_intern(p, "space"), hp_profile_intern(p, "bytes")};
  p->period = 64;
  for (unsigned i = 0; i < 40; i++) {
    char name[16];
    int length = snprintf(name, sizeof name, "f%u", i % 35);
    hp_profile_append_function(p, &(struct hp_function){.name = hp_profile_append_string(p, name, (size_t)length)});
  }
  for (unsigned i = 0; i < 60; i++) {
    struct hp_location location = {.address = i, .mapping = HP_NONE, .first_line = (uint32_t)p->line_count};
    location.line_count = i % 10 == 0 ? 0 : 1 + (i % 7 == 0) * 2;
    for (unsigned l = 0; l < location.line_count; l++)
      hp_profile_append_line(p, &(struct hp_line){i % 11 == 0 ? HP_NONE : random_below(40), random_below(3), 0});
    hp_profile_append_location(p, &location);
  }
  for (unsigned i = 0; i < 100; i++) {
    uint32_t stack[8];
    for (unsigned k = 0; k < 8; k++) stack[k] = random_below(k < 2 ? 10 : 60);
    int64_t objects = (int64_t)random_below(4) - has_negative;
    add_sample(p, stack, random_below(9), objects, objects * 16);
  }
  return p;
}

static void check_first_rows(const struct hp_profile *p, struct hp_report_options options) {
  struct hp_report all = report_of(p, options);
  for (size_t most = 1; most < all.row_count + 2; most++) {
    options.first_rows = most;
    struct hp_report first = report_of(p, options);
    assert_int_equal(first.nonzero_count, all.nonzero_count);
    assert_int_equal(first.row_count, most < all.nonzero_count ? most : all.nonzero_count);
    assert_true(first.total_error == all.total_error);
    for (size_t i = 0; i < first.row_count; i++) {
      const struct hp_report_row *x = &first.rows[i], *y = &all.rows[i];
      assert_string_equal(x->function, y->function);
      assert_true(x->line == y->line && x->flat == y->flat && x->cum == y->cum);
      assert_true(x->flat_error == y->flat_error && x->cum_error == y->cum_error);
    }
    hp_report_free(&first);
  }
  for (size_t i = all.nonzero_count; i < all.row_count; i++) assert_true(all.rows[i].flat == 0 && all.rows[i].cum == 0);
  hp_report_free(&all);
}

static void test_the_first_rows_alone_are_those_of_the_whole(void **unused) {
  (void)unused;
  for (int i = 0; i < 20; i++) {
    struct hp_profile *p = random_profile(i % 2 != 0);
    check_first_rows(p, (struct hp_report_options){.by_line = i % 3 == 0});
    check_first_rows(p, (struct hp_report_options){.focus = "f1", .ignore = "f2$"});
    hp_profile_free(p);
  }
}

/* So many lines that rows are found in a thread of their own: 10 000 locations, two of each function. */
static void test_a_report_of_many_lines_is_exact(void **unused) {
  (void)unused;
  enum { LOCATIONS = 10000 };
  struct hp_profile *p = sample_profile(0x400000, 1);
  uint32_t first = (uint32_t)p->location_count, root = first - 1;
  for (uint32_t i = 0; i < LOCATIONS; i++) {
    char name[40];
    snprintf(name, sizeof name, "f%u", i / 2);
    add_location(p, 0x400100 + i, add_function(p, name, "c.c"), HP_NONE, i);
    add_sample(p, (uint32_t[]){first + i, root}, 2, 1, 1000 + i);
  }
  struct hp_report report = report_of(p, (struct hp_report_options){0});
  assert_int_equal(report.row_count, LOCATIONS / 2 + 4);
  assert_int_equal(report.shown_total, 130 + (int64_t)LOCATIONS * 1000 + (int64_t)LOCATIONS * (LOCATIONS - 1) / 2);
  check_row(&report, "main", 0, report.shown_total);
  for (int64_t i = 0; i < LOCATIONS; i += 1000) {
    char name[40];
    snprintf(name, sizeof name, "f%d", (int)(i / 2));
    check_row(&report, name, 2 * (1000 + i) + 1, 2 * (1000 + i) + 1);
  }
  hp_report_free(&report);
  report = report_of(p, (struct hp_report_options){.first_rows = 2});
  assert_int_equal(report.row_count, 2);
  assert_int_equal(report.nonzero_count, LOCATIONS / 2 + 4);
  check_row(&report, "f4999", 2 * (1000 + 9998) + 1, 2 * (1000 + 9998) + 1);
  check_row(&report, "f4998", 2 * (1000 + 9996) + 1, 2 * (1000 + 9996) + 1);
  hp_report_free(&report);
  report = report_of(p, (struct hp_report_options){.first_rows = 1, .by_line = true});
  assert_string_equal(report.rows[0].function, "f4999");
  assert_int_equal(report.rows[0].line, 9999);
  assert_int_equal(report.rows[0].flat, 10999);
  hp_report_free(&report);
  hp_profile_free(p);
}

static void test_focus_and_ignore_leave_the_total_alone(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1);
  struct hp_report report = report_of(p, (struct hp_report_options){.focus = "^leaf$"});
  assert_int_equal(report.total, 130);
  assert_int_equal(report.shown_total, 100);
  hp_report_free(&report);
  report = report_of(p, (struct hp_report_options){.ignore = "lea"});
  assert_int_equal(report.shown_total, 30);
  hp_report_free(&report);
  report = report_of(p, (struct hp_report_options){.focus = "b\\.c", .ignore = "/bin/app"});
  assert_int_equal(report.shown_total, 0);
  hp_report_free(&report);
  hp_profile_free(p);
}

static void test_a_type_that_is_not_there_is_an_error(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1);
  struct hp_report report;
  struct hp_error error;
  assert_int_equal(hp_report_build(p, &(struct hp_report_options){.type = "cpu"}, &report, &error), -1);
  assert_non_null(strstr(error.text, "inuse_space"));
  assert_int_equal(hp_report_build(p, &(struct hp_report_options){.focus = "("}, &report, &error), -1);
  hp_profile_free(p);
}

static struct hp_profile *merged(uint64_t base, int64_t scale) {
  struct hp_merge *merge = hp_merge_new();
  struct hp_profile *a = sample_profile(0x400000, 1), *b = sample_profile(base, 3);
  assert_int_equal(hp_merge_add(merge, a, "a", 1, NULL), 0);
  assert_int_equal(hp_merge_add(merge, b, "b", scale, NULL), 0);
  hp_profile_free(a);
  hp_profile_free(b);
  return hp_merge_finish(merge);
}

static void test_merge_joins_stacks_loaded_at_other_addresses(void **unused) {
  (void)unused;
  struct hp_profile *sum = merged(0x7f0000000000, 1);
  assert_int_equal(sum->sample_count, 2);
  assert_int_equal(sum->mapping_count, 1);
  assert_int_equal(sum->location_count, 3);
  assert_int_equal(hp_profile_value(sum, 0, 1), 400);
  assert_int_equal(sum->time_nanos, 3000);
  assert_int_equal(sum->duration_nanos, 20);
  assert_int_equal(sum->comment_count, 1);
  assert_string_equal(hp_profile_text(sum, sum->comments[0]), "common");
  hp_profile_free(sum);
}

static void test_a_difference_drops_rows_that_did_not_change(void **unused) {
  (void)unused;
  struct hp_profile *growth = merged(0x7f0000000000, -1);
  assert_int_equal(hp_profile_value(growth, 0, 1), -200);
  hp_profile_free(growth);
  struct hp_merge *merge = hp_merge_new();
  struct hp_profile *p = sample_profile(0x400000, 1);
  assert_int_equal(hp_merge_add(merge, p, "a", 1, NULL), 0);
  assert_int_equal(hp_merge_add(merge, p, "a", -1, NULL), 0);
  growth = hp_merge_finish(merge);
  assert_int_equal(growth->sample_count, 0);
  hp_profile_free(growth);
  hp_profile_free(p);
}

static void test_a_sum_that_holds_a_difference_is_one(void **unused) {
  (void)unused;
  for (int which = 0; which < 2; which++) {
    struct hp_profile *sides[2] = {sample_profile(0x400000, 1), sample_profile(0x400000, 3)};
    for (int i = 0; i < 2; i++) sides[i]->period = 512 << 10;
    hp_profile_mark_difference(sides[which], false);
    struct hp_merge *merge = hp_merge_new();
    for (int i = 0; i < 2; i++) assert_int_equal(hp_merge_add(merge, sides[i], "side", 1, NULL), 0);
    struct hp_profile *sum = hp_merge_finish(merge);
    assert_int_equal(hp_profile_error_partner(sum, 1), HP_NONE);
    assert_int_equal(hp_profile_error_partner(sides[!which], 1), 0);
    assert_int_equal(sum->comment_count, 2); /* "common" and the mark */
    hp_profile_free(sum);
    for (int i = 0; i < 2; i++) hp_profile_free(sides[i]);
  }
}

static void test_stacks_with_other_labels_stay_apart(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1), *q = sample_profile(0x400000, 1);
  q->labels[0].str = hp_profile_intern(q, "young");
  struct hp_merge *merge = hp_merge_new();
  assert_int_equal(hp_merge_add(merge, p, "p", 1, NULL), 0);
  assert_int_equal(hp_merge_add(merge, q, "q", 1, NULL), 0);
  struct hp_profile *sum = hp_merge_finish(merge);
  assert_int_equal(sum->sample_count, 3);
  hp_profile_free(sum);
  hp_profile_free(p);
  hp_profile_free(q);
}

/* The first finding of an hour's fuzzing: nothing but rows without a stack. */
static void test_samples_without_a_stack_are_summed_by_their_labels(void **unused) {
  (void)unused;
  struct hp_error error;
  struct hp_profile *a = hp_profile_new();
  hp_profile_append_type(a, "inuse_space", "bytes");
  for (int i = 0; i < 4; i++) {
    hp_profile_append_sample(a, NULL, 0, (int64_t[]){10 + i});
    if (i == 3) hp_profile_append_label(a, &(struct hp_label){.key = hp_profile_intern(a, "thread"), .num = 3});
  }
  struct hp_merge *merge = hp_merge_new();
  assert_int_equal(hp_merge_add(merge, a, "a", 1, &error), 0);
  assert_int_equal(hp_merge_add(merge, a, "again", 2, &error), 0);
  struct hp_profile *sum = hp_merge_finish(merge);
  assert_int_equal(sum->sample_count, 2);
  assert_int_equal(hp_profile_value(sum, 0, 0), 3 * (10 + 11 + 12));
  assert_int_equal(hp_profile_value(sum, 1, 0), 3 * 13);
  struct hp_filter *filter = hp_filter_new(sum, "x", NULL, &error);
  assert_non_null(filter);
  assert_false(hp_filter_passes(filter, 0));
  hp_filter_free(filter);
  hp_profile_free(sum);
  hp_profile_free(a);
}

static void test_merge_refuses_a_profile_without_the_types(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1), *q = hp_profile_new();
  hp_profile_append_type(q, "samples", "count");
  struct hp_merge *merge = hp_merge_new();
  struct hp_error error;
  assert_int_equal(hp_merge_add(merge, p, "p", 1, &error), 0);
  assert_int_equal(hp_merge_add(merge, q, "q.pb", 1, &error), -1);
  assert_non_null(strstr(error.text, "q.pb"));
  hp_profile_free(hp_merge_finish(merge));
  hp_profile_free(p);
  hp_profile_free(q);
}

static void test_values_at_the_ends_of_the_range_saturate(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1);
  p->values[1] = p->values[3] = INT64_MAX;
  struct hp_report report = report_of(p, (struct hp_report_options){0});
  assert_true(report.total == INT64_MAX);
  assert_true(row(&report, "main")->cum == INT64_MAX);
  hp_report_free(&report);
  p->values[1] = p->values[3] = INT64_MIN;
  report = report_of(p, (struct hp_report_options){0});
  assert_true(report.total == INT64_MAX);
  assert_true(row(&report, "main")->cum == INT64_MIN);
  hp_report_free(&report);
  hp_profile_free(p);
}

static void test_drop_frames_cuts_beneath_the_frame_that_matches(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1);
  p->drop_frames = hp_profile_intern(p, "leaf|inner");
  p->keep_frames = hp_profile_intern(p, "inner");
  hp_profile_drop_frames(p);
  struct hp_report report = report_of(p, (struct hp_report_options){0});
  check_row(&report, "leaf", 0, 0);
  check_row(&report, "inner", 130, 130);
  hp_report_free(&report);
  hp_profile_free(p);
}

static void test_drop_frames_are_names_without_parameters(void **unused) {
  (void)unused;
  static const struct {
    const char *name;
    bool is_dropped;
  } leaves[] = {{"operator new(unsigned long)", true},
                {"(anonymous namespace)::Pool::get(int)", true},
                {"Take::operator()(int) const", true},
                {"operator new[](unsigned long)", false},
                {"user(operator new)", false}};
  for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
    struct hp_profile *p = sample_profile(0x400000, 1);
    p->functions[0].name = hp_profile_intern(p, leaves[i].name);
    p->drop_frames = hp_profile_intern(p, "operator new|\\(anonymous namespace\\)::Pool::get|Take::operator\\(\\)");
    hp_profile_drop_frames(p);
    struct hp_report report = report_of(p, (struct hp_report_options){0});
    check_row(&report, leaves[i].name, leaves[i].is_dropped ? 0 : 100, leaves[i].is_dropped ? 0 : 100);
    hp_report_free(&report);
    hp_profile_free(p);
  }
}

static void expect_error(const void *bytes, size_t length, const char *part) {
  struct hp_profile *profile;
  struct hp_error error;
  assert_int_equal(hp_profile_read_memory("file", bytes, length, &profile, &error), -1);
  if (strstr(error.text, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", error.text, part);
  assert_null(strchr(error.text, '\n'));
}

static void test_damaged_files_say_what_is_wrong(void **unused) {
  (void)unused;
  expect_error("", 0, "empty");
  expect_error("\x0a", 1, "middle of a field");
  expect_error("\x0b\x00", 2, "malformed");
  expect_error("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, "malformed");
  expect_error("\x12\xff\xff\xff\xff\x0f", 6, "malformed"); /* a sample of 4 GiB */
  expect_error("heap_v2/524288\n  t*: 1: 2 [0: 0]\n", 32, "text form");
  expect_error("heap profile:      1:        2 [", 32, "text form");
  expect_error("\x28\xb5\x2f\xfd\x24\x09", 6, "zstd -dc FILE |");
  expect_error("\xfd\x37zXZ\x00\x00", 7, "xz -dc FILE |");
  expect_error("PK\x03\x04\x14\x00", 6, "zip archive");
  expect_error("\x7f\x45LF\x02\x01", 6, "a program or library");
  expect_error("\x1f\x8b\x08", 3, "ends too early");
  expect_error("\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, "gzip");
  expect_error("\x32\x00", 2, "no sample types");
  expect_error("\x32\x01x", 3, "first string");
  expect_error("\x0a\x04\x08\x05\x10\x06\x32\x00", 8, "string");   /* a type with strings 5 and 6 */
  expect_error("\x0a\x00\x32\x00\x12\x00", 6, "number of values"); /* a sample without values */
  expect_error("\x0a\x00\x32\x00\x12\x06\x0a\x01\x09\x12\x01\x01", 12, "location 9");
  expect_error("\x0a\x00\x32\x00\x22\x00", 6, "id 0");
  expect_error("\x0a\x00\x32\x00\x22\x02\x08\x01\x22\x02\x08\x01", 12, "two locations");
  expect_error("\x0a\x00\x32\x00\x22\x04\x08\x01\x10\x05", 10, "mapping 5");
}

static void test_a_file_cut_anywhere_is_an_error_or_a_profile_never_a_crash(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1), *cut;
  void *bytes;
  size_t length;
  hp_profile_write_memory(p, &bytes, &length, NULL);
  for (size_t i = 0; i < length; i++) assert_int_equal(hp_profile_read_memory("cut", bytes, i, &cut, NULL), -1);
  free(bytes);
  hp_profile_free(p);
}

/* Unpacks a gzip file of one member; the length of what was in it. */
static size_t gunzip(void *bytes, size_t length, unsigned char *raw, size_t room) {
  z_stream stream = {.next_in = bytes, .avail_in = (uInt)length, .next_out = raw, .avail_out = (uInt)room};
  inflateInit2(&stream, 31);
  assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  return stream.total_out;
}

static void test_several_gzip_members_are_one_profile(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1), *q;
  void *bytes;
  size_t length;
  hp_profile_write_memory(p, &bytes, &length, NULL);
  unsigned char raw[4096], twice[8192];
  size_t raw_length = gunzip(bytes, length, raw, sizeof raw), used = 0;
  for (int part = 0; part < 2; part++) {
    z_stream out = {.next_in = raw + (part == 0 ? 0 : 20), .avail_in = (uInt)(part == 0 ? 20 : raw_length - 20)};
    out.next_out = twice + used;
    out.avail_out = (uInt)(sizeof twice - used);
    deflateInit2(&out, 6, Z_DEFLATED, 31, 8, 0);
    assert_int_equal(deflate(&out, Z_FINISH), Z_STREAM_END);
    used += out.total_out;
    deflateEnd(&out);
  }
  assert_int_equal(hp_profile_read_memory("twice", twice, used, &q, NULL), 0);
  assert_int_equal(q->sample_count, 2);
  hp_profile_free(q);
  expect_error(twice, used - 3, "ends too early");
  free(bytes);
  hp_profile_free(p);
}

/* 100 MiB of empty samples in 100 kB of gzip. */
static void test_a_decompression_bomb_stops_at_the_limit(void **unused) {
  (void)unused;
  static unsigned char raw[1 << 20], bomb[1 << 20];
  for (size_t i = 0; i < sizeof raw; i += 2) raw[i] = 0x12;
  z_stream out = {.next_out = bomb, .avail_out = sizeof bomb};
  deflateInit2(&out, 9, Z_DEFLATED, 31, 8, 0);
  for (int i = 0; i < 100; i++) {
    out.next_in = raw;
    out.avail_in = sizeof raw;
    assert_int_equal(deflate(&out, i == 99 ? Z_FINISH : Z_NO_FLUSH), i == 99 ? Z_STREAM_END : Z_OK);
  }
  hp_profile_read_limit_set(16 << 20);
  expect_error(bomb, out.total_out, "HEAPPROF_READ_LIMIT");
  hp_profile_read_limit_set(0);
  deflateEnd(&out);
}

/* A stack of narrow ids, then one with an id of 34 bits; the locations are 1 (in order), 7, and that one. */
static void test_ids_may_be_of_any_size_and_order(void **unused) {
  (void)unused;
  static const char file[] =
      "\x0a\x00\x32\x00"
      "\x12\x07\x0a\x02\x01\x07\x12\x01\x05"
      "\x12\x0b\x0a\x06\x83\x80\x80\x80\x20\x01\x12\x01\x06"
      "\x22\x04\x08\x01\x18\x10"
      "\x22\x04\x08\x07\x18\x11"
      "\x22\x08\x08\x83\x80\x80\x80\x20\x18\x12";
  struct hp_profile *p;
  assert_int_equal(hp_profile_read_memory("wide", file, sizeof file - 1, &p, NULL), 0);
  const uint64_t addresses[] = {0x10, 0x11, 0x12, 0x10};
  assert_int_equal(p->stack_location_count, 4);
  for (size_t i = 0; i < 4; i++) assert_int_equal(p->locations[p->stack_locations[i]].address, addresses[i]);
  hp_profile_free(p);
  expect_error(file, sizeof file - 1 - 10, "location 8589934595");
}

/* Many runs long: samples with labels, then lines of text, one of them longer than all slots that are read ahead. */
static struct hp_profile *long_profile(void) {
  struct hp_profile *p = sample_profile(0x400000, 1);
  uint32_t stack[30], key = hp_profile_intern(p, "thread");
  for (uint32_t i = 0; i < 1000; i++) {
    char name[40];
    snprintf(name, sizeof name, "function_%u", i * 7919u % 1000);
    add_location(p, 0x400100 + i, add_function(p, name, "c.c"), HP_NONE, i);
  }
  for (uint32_t i = 0; i < 80000; i++) {
    for (uint32_t d = 0; d < 30; d++) stack[d] = (i * 31 + d * d * 17) % (uint32_t)p->location_count;
    add_sample(p, stack, 1 + i % 30, i, (int64_t)i * 1000);
    if (i % 3 == 0) hp_profile_append_label(p, &(struct hp_label){.key = key, .num = i});
  }
  size_t length = 3 << 20;
  char *text = calloc(length + 1, 1);
  for (size_t i = 0; i < length; i++) text[i] = (char)('a' + i * i % 23);
  hp_profile_append_comment(p, text);
  free(text);
  return p;
}

/* With a thread and without: the same profile or the same sentence. Returns whether it is one. */
static bool read_both_ways(const void *bytes, size_t length) {
  struct hp_profile *profiles[2];
  struct hp_error errors[2] = {{""}, {""}};
  int results[2];
  for (int with = 0; with < 2; with++) {
    hp_profile_read_ahead_set(with != 0 ? 1 : UINT64_MAX);
    results[with] = hp_profile_read_memory("both", bytes, length, &profiles[with], &errors[with]);
  }
  hp_profile_read_ahead_set(0);
  assert_int_equal(results[0], results[1]);
  assert_string_equal(errors[0].text, errors[1].text);
  if (results[0] != 0) return false;
  void *written[2];
  size_t lengths[2];
  for (int with = 0; with < 2; with++) {
    assert_int_equal(hp_profile_write_memory(profiles[with], &written[with], &lengths[with], NULL), 0);
    hp_profile_free(profiles[with]);
  }
  assert_int_equal(lengths[0], lengths[1]);
  assert_memory_equal(written[0], written[1], lengths[0]);
  free(written[0]);
  free(written[1]);
  return true;
}

static void test_reading_ahead_in_a_thread_changes_nothing(void **unused) {
  (void)unused;
  struct hp_profile *p = long_profile(), *again = read_back(p);
  assert_int_equal(again->sample_count, 80002);
  assert_memory_equal(again->values, p->values, p->sample_count * p->type_count * sizeof *p->values);
  assert_memory_equal(again->stack_locations, p->stack_locations, p->stack_location_count * sizeof *p->stack_locations);
  hp_profile_free(again);
  void *bytes;
  size_t length, room = 16 << 20;
  assert_int_equal(hp_profile_write_memory(p, &bytes, &length, NULL), 0);
  hp_profile_free(p);
  unsigned char *raw = malloc(room);
  size_t raw_length = gunzip(bytes, length, raw, room);
  assert_true(raw_length > 6 << 20);
  assert_true(read_both_ways(bytes, length));
  assert_true(read_both_ways(raw, raw_length));
  for (size_t i = 1; i < 8; i++) { /* cut, and damaged, at places all over */
    assert_false(read_both_ways(bytes, length * i / 8));
    assert_false(read_both_ways(raw, raw_length * i / 8));
    unsigned char kept = raw[raw_length * i / 8];
    raw[raw_length * i / 8] ^= 0xff;
    read_both_ways(raw, raw_length);
    raw[raw_length * i / 8] = kept;
  }
  for (uint64_t limit = 64 << 10; limit <= 8 << 20; limit *= 2) {
    hp_profile_read_limit_set(limit);
    assert_false(read_both_ways(bytes, length));
  }
  hp_profile_read_limit_set(0);
  raw[0] = 0x0f; /* no field has this type: the thread is stopped with all the rest unread */
  assert_false(read_both_ways(raw, raw_length));
  free(raw);
  free(bytes);
}

static void test_a_million_equal_strings_read_and_intern_fast(void **unused) {
  (void)unused;
  struct hp_profile *p = hp_profile_new();
  for (int i = 0; i < 1000000; i++) hp_profile_append_string(p, "same", 4);
  assert_int_equal(hp_profile_intern(p, "same"), 1);
  assert_int_equal(hp_profile_intern(p, "new"), 1000001);
  assert_int_equal(hp_profile_intern(p, "new"), 1000001);
  hp_profile_free(p);
}

static void test_a_failed_write_leaves_no_file(void **unused) {
  (void)unused;
  struct hp_profile *p = sample_profile(0x400000, 1);
  struct hp_error error;
  char folder[] = "/tmp/hp_test_XXXXXX";
  assert_non_null(mkdtemp(folder));
  char path[64];
  snprintf(path, sizeof path, "%s/no/such/x.pb.gz", folder);
  assert_int_equal(hp_profile_write(path, p, &error), -1);
  assert_non_null(strstr(error.text, "cannot write"));
  snprintf(path, sizeof path, "%s/x.pb.gz", folder);
  assert_int_equal(symlink("/nonexistent/target", path), 0);
  assert_int_equal(hp_profile_write(path, p, &error), 0); /* the link is replaced, not followed */
  struct stat status;
  assert_int_equal(lstat(path, &status), 0);
  assert_true(S_ISREG(status.st_mode));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0); /* nothing else was left */
  hp_profile_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_written_reads_back_the_same),
      cmocka_unit_test(test_report_counts_inlined_frames_and_recursion_once),
      cmocka_unit_test(test_the_first_rows_alone_are_those_of_the_whole),
      cmocka_unit_test(test_a_report_of_many_lines_is_exact),
      cmocka_unit_test(test_focus_and_ignore_leave_the_total_alone),
      cmocka_unit_test(test_a_type_that_is_not_there_is_an_error),
      cmocka_unit_test(test_merge_joins_stacks_loaded_at_other_addresses),
      cmocka_unit_test(test_a_difference_drops_rows_that_did_not_change),
      cmocka_unit_test(test_a_sum_that_holds_a_difference_is_one),
      cmocka_unit_test(test_stacks_with_other_labels_stay_apart),
      cmocka_unit_test(test_samples_without_a_stack_are_summed_by_their_labels),
      cmocka_unit_test(test_merge_refuses_a_profile_without_the_types),
      cmocka_unit_test(test_values_at_the_ends_of_the_range_saturate),
      cmocka_unit_test(test_drop_frames_cuts_beneath_the_frame_that_matches),
      cmocka_unit_test(test_drop_frames_are_names_without_parameters),
      cmocka_unit_test(test_damaged_files_say_what_is_wrong),
      cmocka_unit_test(test_a_file_cut_anywhere_is_an_error_or_a_profile_never_a_crash),
      cmocka_unit_test(test_several_gzip_members_are_one_profile),
      cmocka_unit_test(test_a_decompression_bomb_stops_at_the_limit),
      cmocka_unit_test(test_ids_may_be_of_any_size_and_order),
      cmocka_unit_test(test_reading_ahead_in_a_thread_changes_nothing),
      cmocka_unit_test(test_a_million_equal_strings_read_and_intern_fast),
      cmocka_unit_test(test_a_failed_write_leaves_no_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
