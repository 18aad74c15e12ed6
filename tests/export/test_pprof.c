/* SPDX-License-Identifier: MIT
 * test_pprof.c - what the encoder writes, read back with protobuf-c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export_test.h"
#include "fake_memory.h"
#include "fake_modules.h"
#include "pprof.h"
#include "pprof_check.h"
#include "profile_fixture.h"

enum { PROGRAM = 0x400000, LIBRARY = 0x7f0000000000, TEXT_BYTES = 0x10000 };

static const struct hp_pprof_options OPTIONS = {.with_symbols = true, .max_depth = 128, .executable = "/opt/app"};

static int setup(void **state) {
  (void)state;
  fake_modules_reset();
  fake_memory_fail_at(0);
  fake_modules_add((struct hp_module){.text_start = PROGRAM,
                                      .text_end = PROGRAM + TEXT_BYTES,
                                      .text_offset = 0x1000,
                                      .build_id_size = 3,
                                      .build_id = {0xAB, 0x01, 0xFF},
                                      .is_executable = true,
                                      .path = ""});
  fake_modules_add((struct hp_module){
      .text_start = LIBRARY, .text_end = LIBRARY + TEXT_BYTES, .text_offset = 0x2000, .path = "/nowhere/libone.so.1"});
  return 0;
}

static struct hp_row row_of(const uintptr_t *pcs, uint32_t depth, int64_t objects, int64_t bytes, int64_t inuse_objects,
                            int64_t inuse_bytes) {
  return (struct hp_row){
      .pcs = pcs, .depth = depth, .modules = fake_modules_loaded(), .values = {objects, bytes, inuse_objects, inuse_bytes}};
}

static struct hp_snapshot snapshot_of(const struct hp_row *rows, size_t n, enum hp_profile_kind kind) {
  return (struct hp_snapshot){.rows = rows,
                              .row_count = n,
                              .kind = kind,
                              .time_nanos = 1700000000123456789,
                              .duration_nanos = 5000000000,
                              .period_bytes = 524288};
}

static void expect_types(const struct decoded *decoded, size_t n) {
  static const char *const WANT[][2] = {
      {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
  assert_int_equal(decoded->profile->n_sample_type, n);
  for (size_t i = 0; i < n; i++) {
    assert_string_equal(string_of(decoded, decoded->profile->sample_type[i]->type), WANT[i][0]);
    assert_string_equal(string_of(decoded, decoded->profile->sample_type[i]->unit), WANT[i][1]);
  }
}

static void expect_values(const struct decoded *decoded, size_t sample, size_t n, const int64_t *want) {
  assert_int_equal(decoded->profile->sample[sample]->n_value, n);
  for (size_t i = 0; i < n; i++) assert_int_equal(decoded->profile->sample[sample]->value[i], want[i]);
}

static void test_header_says_types_period_time_and_comments(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PROGRAM + 0x11};
  const char *const comments[] = {"heapprof 0.1", "raw samples: 5"};
  struct hp_row row = row_of(pcs, 1, 4, 400, 2, 200);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  snapshot.comments = comments;
  snapshot.comment_count = 2;
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  const Perftools__Profiles__Profile *profile = decoded.profile;
  expect_types(&decoded, 4);
  assert_string_equal(string_of(&decoded, profile->default_sample_type), "inuse_space");
  assert_string_equal(string_of(&decoded, profile->period_type->type), "space");
  assert_string_equal(string_of(&decoded, profile->period_type->unit), "bytes");
  assert_int_equal(profile->period, 524288);
  assert_int_equal(profile->time_nanos, 1700000000123456789);
  assert_int_equal(profile->duration_nanos, 5000000000);
  assert_int_equal(profile->n_comment, 2);
  assert_string_equal(string_of(&decoded, profile->comment[0]), comments[0]);
  assert_string_equal(string_of(&decoded, profile->comment[1]), comments[1]);
  assert_string_equal(profile->string_table[0], "");
  expect_values(&decoded, 0, 4, (int64_t[]){4, 400, 2, 200});
  decoded_free(&decoded);
}

static void test_heap_zeroes_alloc_and_drops_dead_rows_and_all_that_only_they_used(void **state) {
  (void)state;
  const uintptr_t dead[] = {LIBRARY + 0x21, PROGRAM + 0x31};
  const uintptr_t live[] = {PROGRAM + 0x41};
  struct hp_row rows[] = {row_of(dead, 2, 10, 160, 0, 0), row_of(live, 1, 5, 80, 5, 80)};
  struct hp_snapshot snapshot = snapshot_of(rows, 2, HP_KIND_HEAP);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  expect_types(&decoded, 4);
  assert_int_equal(decoded.profile->n_sample, 1);
  expect_values(&decoded, 0, 4, (int64_t[]){0, 0, 5, 80});
  assert_int_equal(decoded.profile->n_location, 1);
  assert_int_equal(decoded.profile->location[0]->address, PROGRAM + 0x40);
  assert_int_equal(decoded.profile->n_mapping, 1);
  decoded_free(&decoded);
}

static void test_heap_of_dead_rows_only_keeps_the_program_s_mapping(void **state) {
  (void)state;
  const uintptr_t dead[] = {LIBRARY + 0x21};
  struct hp_row row = row_of(dead, 1, 10, 160, 0, 0);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_HEAP);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(decoded.profile->n_sample, 0);
  assert_int_equal(decoded.profile->n_location, 0);
  assert_int_equal(decoded.profile->n_function, 0);
  assert_int_equal(decoded.profile->n_mapping, 1);
  assert_string_equal(string_of(&decoded, decoded.profile->mapping[0]->filename), "/opt/app");
  decoded_free(&decoded);
}

static void test_alloc_and_delta_have_two_columns(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PROGRAM + 0x11};
  const enum hp_profile_kind kinds[] = {HP_KIND_ALLOC, HP_KIND_DELTA};
  for (size_t i = 0; i < 2; i++) {
    struct hp_row rows[] = {row_of(pcs, 1, 10, 160, 10, 160), row_of(pcs, 1, 0, 0, 7, 70)};
    struct hp_snapshot snapshot = snapshot_of(rows, 2, kinds[i]);
    struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
    expect_types(&decoded, 2);
    assert_int_equal(decoded.profile->n_sample, 1);
    expect_values(&decoded, 0, 2, (int64_t[]){10, 160});
    assert_string_equal(string_of(&decoded, decoded.profile->default_sample_type), "alloc_space");
    decoded_free(&decoded);
  }
}

static void test_full_and_peak_keep_freed_rows_and_drop_empty_ones(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PROGRAM + 0x11};
  const enum hp_profile_kind kinds[] = {HP_KIND_FULL, HP_KIND_PEAK};
  for (size_t i = 0; i < 2; i++) {
    struct hp_row rows[] = {row_of(pcs, 1, 0, 0, 0, 0), row_of(pcs, 1, 3, 30, 0, 0)};
    struct hp_snapshot snapshot = snapshot_of(rows, 2, kinds[i]);
    struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
    assert_int_equal(decoded.profile->n_sample, 1);
    expect_values(&decoded, 0, 4, (int64_t[]){3, 30, 0, 0});
    decoded_free(&decoded);
  }
}

static void test_empty_profile_is_valid(void **state) {
  (void)state;
  const enum hp_profile_kind kinds[] = {HP_KIND_FULL, HP_KIND_HEAP, HP_KIND_ALLOC, HP_KIND_DELTA, HP_KIND_PEAK};
  for (size_t i = 0; i < 5; i++) {
    struct hp_snapshot snapshot = snapshot_of(NULL, 0, kinds[i]);
    struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
    expect_types(&decoded, i == 2 || i == 3 ? 2 : 4);
    assert_int_equal(decoded.profile->n_sample, 0);
    assert_int_equal(decoded.profile->n_mapping, 1);
    decoded_free(&decoded);
  }
}

static void test_three_encodes_in_a_row_are_equal(void **state) {
  (void)state;
  const uintptr_t pcs[] = {LIBRARY + 0x21, PROGRAM + 0x31};
  struct hp_row row = row_of(pcs, 2, 4, 400, 2, 200);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct decoded first = encode_and_decode(&snapshot, &OPTIONS);
  for (int i = 0; i < 2; i++) {
    struct decoded next = encode_and_decode(&snapshot, &OPTIONS);
    assert_int_equal(next.raw_length, first.raw_length);
    assert_memory_equal(next.raw, first.raw, first.raw_length);
    decoded_free(&next);
  }
  decoded_free(&first);
}

static void test_address_is_return_address_minus_one_in_its_mapping(void **state) {
  (void)state;
  /* The last one returns to the very end of the text: its call is the last instruction of a function that never returns. */
  const uintptr_t pcs[] = {LIBRARY + 0x21, PROGRAM + 0x31, LIBRARY + TEXT_BYTES};
  struct hp_row row = row_of(pcs, 3, 4, 400, 2, 200);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  for (size_t i = 0; i < 3; i++) assert_int_equal(location_of(&decoded, 0, i)->address, pcs[i] - 1);
  const Perftools__Profiles__Mapping *program = mapping_of(&decoded, 0, 1);
  const Perftools__Profiles__Mapping *library = mapping_of(&decoded, 0, 0);
  assert_ptr_equal(program, decoded.profile->mapping[0]);
  assert_ptr_equal(mapping_of(&decoded, 0, 2), library);
  assert_int_equal(program->memory_start, PROGRAM);
  assert_int_equal(program->memory_limit, PROGRAM + TEXT_BYTES);
  assert_int_equal(program->file_offset, 0x1000);
  assert_string_equal(string_of(&decoded, program->filename), "/opt/app");
  assert_string_equal(string_of(&decoded, program->build_id), "ab01ff");
  assert_false(program->has_functions || program->has_filenames || program->has_line_numbers || program->has_inline_frames);
  assert_string_equal(string_of(&decoded, library->filename), "/nowhere/libone.so.1");
  assert_string_equal(string_of(&decoded, library->build_id), "");
  assert_int_equal(library->file_offset, 0x2000);
  decoded_free(&decoded);
}

static void test_ids_count_from_one_in_order_of_use(void **state) {
  (void)state;
  const uintptr_t a[] = {LIBRARY + 0x21, PROGRAM + 0x31};
  const uintptr_t b[] = {PROGRAM + 0x31, PROGRAM + 0x41, LIBRARY + 0x21};
  struct hp_row rows[] = {row_of(a, 2, 1, 1, 0, 0), row_of(b, 3, 1, 1, 0, 0)};
  struct hp_snapshot snapshot = snapshot_of(rows, 2, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  for (size_t i = 0; i < decoded.profile->n_location; i++) assert_int_equal(decoded.profile->location[i]->id, i + 1);
  for (size_t i = 0; i < decoded.profile->n_mapping; i++) assert_int_equal(decoded.profile->mapping[i]->id, i + 1);
  assert_int_equal(decoded.profile->n_location, 3);
  assert_int_equal(decoded.profile->sample[0]->location_id[0], 1);
  assert_int_equal(decoded.profile->sample[0]->location_id[1], 2);
  assert_int_equal(decoded.profile->sample[1]->location_id[0], 2);
  assert_int_equal(decoded.profile->sample[1]->location_id[1], 3);
  assert_int_equal(decoded.profile->sample[1]->location_id[2], 1);
  decoded_free(&decoded);
}

static void test_rows_that_share_their_root_end_keep_their_own_frames(void **state) {
  (void)state;
  enum { ROWS = 2000, DEPTH_MAX = 12 };
  static uintptr_t pcs[ROWS][DEPTH_MAX];
  static struct hp_row rows[ROWS];
  uint64_t mixed = 1;
  for (size_t i = 0; i < ROWS; i++) {
    uint32_t depth = (uint32_t)(mixed >> 40) % (DEPTH_MAX + 1);
    for (uint32_t k = 0; k < depth; k++) { /* from the root: mostly equal, sometimes without an address */
      mixed = mixed * 6364136223846793005u + 1442695040888963407u;
      uint64_t dice = mixed >> 60;
      pcs[i][depth - 1 - k] = dice < 4 ? 0 : PROGRAM + 16 + 64 * k + (dice < 6 ? dice : 0);
    }
    mixed = mixed * 6364136223846793005u + 1442695040888963407u;
    rows[i] = row_of(pcs[i], depth, 1, 10, 1, 10);
    if ((uint32_t)(mixed >> 62) == 0) rows[i].modules = fake_modules_set(hp_modules_find(PROGRAM));
    if (mixed >> 58 == 5) rows[i].stack = HP_ROW_NO_STACK;
  }
  struct hp_snapshot snapshot = snapshot_of(rows, ROWS, HP_KIND_FULL);
  struct hp_pprof_options options = OPTIONS;
  options.max_depth = DEPTH_MAX - 2;
  struct decoded decoded = encode_and_decode(&snapshot, &options);
  assert_int_equal(decoded.profile->n_sample, ROWS);
  for (size_t i = 0; i < ROWS; i++) {
    size_t at = 0;
    for (uint32_t k = 0; k < rows[i].depth && rows[i].stack == HP_ROW_WHOLE && at < options.max_depth; k++) {
      if (pcs[i][k] != 0) assert_int_equal(location_of(&decoded, i, at++)->address, pcs[i][k] - 1);
    }
    size_t pseudo = at == 0 ? 1 : decoded.profile->sample[i]->n_location_id - at;
    assert_in_range(pseudo, 0, 1);
    if (pseudo == 1) assert_string_equal(frame_of(&decoded, i, at), at == 0 ? "[no stack]" : "[truncated]");
  }
  decoded_free(&decoded);
}

static void test_address_in_no_module_has_no_mapping(void **state) {
  (void)state;
  const uintptr_t pcs[] = {0x12345679, PROGRAM + 0x31};
  struct hp_row row = row_of(pcs, 2, 1, 10, 0, 0);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(location_of(&decoded, 0, 0)->mapping_id, 0);
  assert_int_equal(location_of(&decoded, 0, 0)->address, 0x12345678);
  assert_int_equal(location_of(&decoded, 0, 0)->n_line, 0);
  decoded_free(&decoded);
}

static void test_deleted_is_cut_from_paths(void **state) {
  (void)state;
  fake_modules_add((struct hp_module){.text_start = 0x500000, .text_end = 0x501000, .path = "/tmp/plugin.so (deleted)"});
  const uintptr_t pcs[] = {0x500011};
  struct hp_row row = row_of(pcs, 1, 1, 10, 0, 0);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct hp_pprof_options options = OPTIONS;
  options.executable = "/opt/app (deleted)";
  struct decoded decoded = encode_and_decode(&snapshot, &options);
  assert_string_equal(string_of(&decoded, decoded.profile->mapping[0]->filename), "/opt/app");
  assert_string_equal(string_of(&decoded, decoded.profile->mapping[1]->filename), "/tmp/plugin.so");
  decoded_free(&decoded);
}

static void test_program_never_sampled_is_registered_as_first_mapping(void **state) {
  (void)state;
  fake_modules_reset();
  struct hp_snapshot snapshot = snapshot_of(NULL, 0, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(fake_modules_notes(), 1);
  const Perftools__Profiles__Mapping *mapping = decoded.profile->mapping[0];
  uintptr_t here = (uintptr_t)&test_program_never_sampled_is_registered_as_first_mapping;
  assert_true(mapping->memory_start <= here && here < mapping->memory_limit);
  decoded_free(&decoded);
}

static void test_program_nothing_is_known_of_has_a_mapping_all_the_same(void **state) {
  (void)state;
  fake_modules_reset();
  fake_modules_refuse();
  const uintptr_t pcs[] = {PROGRAM + 0x11};
  struct hp_row row = row_of(pcs, 1, 4, 400, 2, 200);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(decoded.profile->n_mapping, 1);
  assert_string_equal(string_of(&decoded, decoded.profile->mapping[0]->filename), "/opt/app");
  assert_true(decoded.profile->mapping[0]->memory_start < decoded.profile->mapping[0]->memory_limit);
  assert_int_equal(location_of(&decoded, 0, 0)->mapping_id, 0);
  decoded_free(&decoded);
}

static void expect_only_frame(struct hp_row row, const char *name) {
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(decoded.profile->sample[0]->n_location_id, 1);
  assert_string_equal(frame_of(&decoded, 0, 0), name);
  assert_int_equal(location_of(&decoded, 0, 0)->address, 0);
  assert_int_equal(location_of(&decoded, 0, 0)->mapping_id, 0);
  decoded_free(&decoded);
}

static void test_rows_without_a_stack_get_a_pseudo_frame(void **state) {
  (void)state;
  const uintptr_t unusable[] = {0, 1};
  struct hp_row row = row_of(NULL, 0, 1, 10, 1, 10);
  expect_only_frame(row, "[no stack]");
  row.stack = HP_ROW_NO_STACK;
  expect_only_frame(row, "[no stack]");
  row.stack = HP_ROW_STACK_TABLE_FULL;
  expect_only_frame(row, "[stack table full]");
  row.stack = HP_ROW_TRUNCATED;
  expect_only_frame(row, "[truncated]");
  expect_only_frame(row_of(unusable, 2, 1, 10, 1, 10), "[no stack]");
  /* Frames that came along are not believed. */
  const uintptr_t pcs[] = {PROGRAM + 0x31};
  row = row_of(pcs, 1, 1, 10, 1, 10);
  row.stack = HP_ROW_NO_STACK;
  expect_only_frame(row, "[no stack]");
}

static void test_pseudo_frames_have_names_without_symbols_too(void **state) {
  (void)state;
  struct hp_row row = row_of(NULL, 0, 1, 10, 1, 10);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct hp_pprof_options options = OPTIONS;
  options.with_symbols = false;
  struct decoded decoded = encode_and_decode(&snapshot, &options);
  assert_string_equal(frame_of(&decoded, 0, 0), "[no stack]");
  decoded_free(&decoded);
}

static void test_deeper_than_max_depth_ends_in_truncated_at_the_root(void **state) {
  (void)state;
  uintptr_t pcs[300];
  for (size_t i = 0; i < 300; i++) pcs[i] = PROGRAM + 0x11 + 4 * i;
  const uint32_t depths[] = {9, 10, 11, 12, 14, 15, 300};
  struct hp_pprof_options options = OPTIONS;
  options.max_depth = 10;
  for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
    struct hp_row row = row_of(pcs, depths[i], 1, 10, 1, 10);
    struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
    struct decoded decoded = encode_and_decode(&snapshot, &options);
    size_t n = decoded.profile->sample[0]->n_location_id;
    assert_int_equal(n, depths[i] <= 10 ? depths[i] : 11);
    assert_int_equal(location_of(&decoded, 0, 0)->address, pcs[0] - 1);
    if (depths[i] > 10) {
      assert_string_equal(frame_of(&decoded, 0, 10), "[truncated]");
      assert_int_equal(location_of(&decoded, 0, 9)->address, pcs[9] - 1);
    }
    decoded_free(&decoded);
  }
}

static void test_truncated_row_keeps_its_frames(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PROGRAM + 0x31, PROGRAM + 0x41};
  struct hp_row row = row_of(pcs, 2, 1, 10, 1, 10);
  row.stack = HP_ROW_TRUNCATED;
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(decoded.profile->sample[0]->n_location_id, 3);
  assert_string_equal(frame_of(&decoded, 0, 2), "[truncated]");
  decoded_free(&decoded);
}

static void test_strings_are_utf8_whatever_the_bytes_were(void **state) {
  (void)state;
  fake_modules_add((struct hp_module){.text_start = 0x500000, .text_end = 0x501000, .path = "/tmp/\xFF\xC3.so"});
  const uintptr_t pcs[] = {0x500011};
  const struct hp_label label = {.key = "thread", .str = "w\xE9rk \xE2\x82\xAC"};
  const char *const comments[] = {"\xED\xA0\x80"};
  struct hp_row row = row_of(pcs, 1, 1, 10, 1, 10);
  row.labels = &label;
  row.label_count = 1;
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  snapshot.comments = comments;
  snapshot.comment_count = 1;
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_string_equal(string_of(&decoded, mapping_of(&decoded, 0, 0)->filename), "/tmp/\xEF\xBF\xBD\xEF\xBF\xBD.so");
  assert_string_equal(string_of(&decoded, decoded.profile->sample[0]->label[0]->str), "w\xEF\xBF\xBDrk \xE2\x82\xAC");
  assert_string_equal(string_of(&decoded, decoded.profile->comment[0]), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  decoded_free(&decoded);
}

static void test_labels_are_text_or_a_number_with_a_unit(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PROGRAM + 0x31};
  const struct hp_label labels[] = {{.key = "age", .str = "1m-10m"},
                                    {.key = "bytes", .num = 4096, .unit = "bytes"},
                                    {.key = "bytes", .num = 0},
                                    {.key = "thread", .str = ""}};
  struct hp_row row = row_of(pcs, 1, 1, 10, 1, 10);
  row.labels = labels;
  row.label_count = 4;
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  const Perftools__Profiles__Sample *sample = decoded.profile->sample[0];
  assert_int_equal(sample->n_label, 3);
  assert_string_equal(string_of(&decoded, sample->label[0]->key), "age");
  assert_string_equal(string_of(&decoded, sample->label[0]->str), "1m-10m");
  assert_int_equal(sample->label[0]->num, 0);
  assert_string_equal(string_of(&decoded, sample->label[1]->key), "bytes");
  assert_int_equal(sample->label[1]->str, 0);
  assert_int_equal(sample->label[1]->num, 4096);
  assert_string_equal(string_of(&decoded, sample->label[1]->num_unit), "bytes");
  assert_int_equal(sample->label[2]->num, 0);
  assert_int_not_equal(sample->label[2]->num_unit, 0);
  decoded_free(&decoded);
}

static void expect_fault(struct hp_row row, const char *want) {
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct hp_arena arena = {0};
  struct memory_sink sink;
  const char *fault = NULL;
  memory_sink_init(&sink);
  assert_int_equal(hp_pprof_encode(&snapshot, &OPTIONS, &arena, &sink.base, &fault), -EBADMSG);
  assert_string_equal(fault, want);
  memory_sink_free(&sink);
  hp_arena_reset(&arena);
}

static void test_impossible_rows_fail_the_encode_and_say_why(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PROGRAM + 0x31};
  expect_fault(row_of(pcs, 1, 1, 10, 1, 11), "invalid heap profile: sample 0 has more in use than allocated");
  expect_fault(row_of(pcs, 1, 1, 10, 2, 10), "invalid heap profile: sample 0 has more in use than allocated");
  expect_fault(row_of(pcs, 1, -1, 10, 0, 0), "invalid heap profile: sample 0 has a negative value at index 0");
  expect_fault(row_of(pcs, 1, INT64_MIN, 0, 0, 0), "invalid heap profile: sample 0 has a negative value at index 0");
}

static void make_many(struct hp_row *rows, uintptr_t *pcs, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint64_t mixed = (i * 0x9E3779B97F4A7C15ull) >> 20;
    for (size_t k = 0; k < 8; k++) pcs[8 * i + k] = PROGRAM + 2 + (mixed * (k + 3)) % (TEXT_BYTES - 4);
    rows[i] = row_of(&pcs[8 * i], 8, (int64_t)(mixed + 1), (int64_t)(mixed * 7 + 1), 1, 1);
  }
}

enum { MANY = 6000 };

static void test_every_failing_write_fails_the_encode(void **state) {
  (void)state;
  struct hp_row *rows = calloc(MANY, sizeof *rows);
  uintptr_t *pcs = calloc(8 * MANY, sizeof *pcs);
  make_many(rows, pcs, MANY);
  struct hp_snapshot snapshot = snapshot_of(rows, MANY, HP_KIND_FULL);
  int status = -1;
  unsigned k = 0;
  while (status != 0) {
    struct hp_arena arena = {0};
    struct memory_sink sink;
    memory_sink_init(&sink);
    sink.fail_at = ++k;
    status = hp_pprof_encode(&snapshot, &OPTIONS, &arena, &sink.base, NULL);
    assert_true(status == 0 || status == -ENOSPC);
    assert_int_equal(sink.writes, status == 0 ? k - 1 : k); /* nothing is written after a failure */
    memory_sink_free(&sink);
    hp_arena_reset(&arena);
  }
  assert_true(k > 3);
  free(pcs);
  free(rows);
}

static void test_every_refused_chunk_of_memory_fails_the_encode(void **state) {
  (void)state;
  struct hp_row *rows = calloc(MANY, sizeof *rows);
  uintptr_t *pcs = calloc(8 * MANY, sizeof *pcs);
  make_many(rows, pcs, MANY);
  struct hp_snapshot snapshot = snapshot_of(rows, MANY, HP_KIND_FULL);
  struct hp_pprof_options options = OPTIONS;
  options.with_symbols = false; /* names that are missing for want of memory do not fail an encode */
  int status = -1;
  unsigned k = 0;
  while (status != 0) {
    struct hp_arena arena = {0};
    struct memory_sink sink;
    memory_sink_init(&sink);
    fake_memory_fail_at(++k);
    status = hp_pprof_encode(&snapshot, &options, &arena, &sink.base, NULL);
    fake_memory_fail_at(0);
    assert_true(status == 0 || status == -ENOMEM);
    memory_sink_free(&sink);
    hp_arena_reset(&arena);
  }
  assert_true(k > 3);
  free(pcs);
  free(rows);
}

/* All but those for names, of which some are missing then, but nothing else. */
static void expect_every_piece_needed(const struct hp_snapshot *snapshot) {
  enum { FOR_NAMES = 4 }; /* the queries, their frames, what is pending, the targets */
  unsigned k = 0, failed = 0;
  for (bool has_come = true; has_come;) {
    struct hp_arena arena = {0};
    struct memory_sink sink;
    memory_sink_init(&sink);
    fake_memory_refuse_piece(++k);
    int status = hp_pprof_encode(snapshot, &OPTIONS, &arena, &sink.base, NULL);
    has_come = fake_memory_refuse_piece(0);
    assert_true(status == 0 || (has_come && status == -ENOMEM));
    failed += status != 0;
    memory_sink_free(&sink);
    hp_arena_reset(&arena);
  }
  assert_true(k > 20);
  assert_int_equal(failed, k - 1 - FOR_NAMES);
}

static void test_every_refused_piece_of_memory_fails_the_encode(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PROGRAM + 0x31, PROGRAM + 0x41, LIBRARY + 0x51, 0x99};
  const struct hp_label labels[] = {{.key = "bytes", .num = 48, .unit = "bytes"}, {.key = "thread", .str = "worker"}};
  static const char *const comments[] = {"one", "two"};
  struct hp_row rows[] = {row_of(pcs, 4, 3, 300, 1, 100), row_of(pcs + 1, 3, 2, 20, 2, 20), row_of(pcs, 0, 1, 1, 1, 1)};
  rows[0].labels = labels;
  rows[0].label_count = 2;
  rows[2].stack = HP_ROW_NO_STACK;
  struct hp_snapshot snapshot = snapshot_of(rows, 3, HP_KIND_FULL);
  snapshot.comments = comments;
  snapshot.comment_count = 2;
  expect_every_piece_needed(&snapshot);
}

static void test_own_check_and_a_saturated_value_agree(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PROGRAM + 0x31};
  struct hp_row row = row_of(pcs, 1, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX);
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  expect_values(&decoded, 0, 4, (int64_t[]){INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX});
  struct hp_arena arena = {0};
  const char *fault;
  assert_int_equal(hp_pprof_check_buffer(decoded.raw, decoded.raw_length, HP_KIND_FULL, &arena, &fault), 0);
  hp_arena_reset(&arena);
  decoded_free(&decoded);
}

static void test_the_largest_row_fits(void **state) {
  (void)state;
  enum { DEPTH = 5000, LABELS = 255 };
  uintptr_t *pcs = calloc(DEPTH, sizeof *pcs);
  struct hp_label *labels = calloc(LABELS, sizeof *labels);
  for (size_t i = 0; i < DEPTH; i++) pcs[i] = PROGRAM + 2 + i;
  for (size_t i = 0; i < LABELS; i++) labels[i] = (struct hp_label){.key = "bytes", .num = INT64_MIN, .unit = "bytes"};
  struct hp_row row = row_of(pcs, DEPTH, INT64_MAX, INT64_MAX, 1, 1);
  row.labels = labels;
  row.label_count = LABELS;
  struct hp_snapshot snapshot = snapshot_of(&row, 1, HP_KIND_FULL);
  struct hp_pprof_options options = OPTIONS;
  options.max_depth = UINT32_MAX;
  struct decoded decoded = encode_and_decode(&snapshot, &options);
  assert_int_equal(decoded.profile->sample[0]->n_location_id, 4097);
  assert_string_equal(frame_of(&decoded, 0, 4096), "[truncated]");
  assert_int_equal(decoded.profile->sample[0]->n_label, LABELS);
  decoded_free(&decoded);
  free(labels);
  free(pcs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_header_says_types_period_time_and_comments, setup),
      cmocka_unit_test_setup(test_heap_zeroes_alloc_and_drops_dead_rows_and_all_that_only_they_used, setup),
      cmocka_unit_test_setup(test_heap_of_dead_rows_only_keeps_the_program_s_mapping, setup),
      cmocka_unit_test_setup(test_alloc_and_delta_have_two_columns, setup),
      cmocka_unit_test_setup(test_full_and_peak_keep_freed_rows_and_drop_empty_ones, setup),
      cmocka_unit_test_setup(test_empty_profile_is_valid, setup),
      cmocka_unit_test_setup(test_three_encodes_in_a_row_are_equal, setup),
      cmocka_unit_test_setup(test_address_is_return_address_minus_one_in_its_mapping, setup),
      cmocka_unit_test_setup(test_ids_count_from_one_in_order_of_use, setup),
      cmocka_unit_test_setup(test_rows_that_share_their_root_end_keep_their_own_frames, setup),
      cmocka_unit_test_setup(test_address_in_no_module_has_no_mapping, setup),
      cmocka_unit_test_setup(test_deleted_is_cut_from_paths, setup),
      cmocka_unit_test_setup(test_program_never_sampled_is_registered_as_first_mapping, setup),
      cmocka_unit_test_setup(test_program_nothing_is_known_of_has_a_mapping_all_the_same, setup),
      cmocka_unit_test_setup(test_rows_without_a_stack_get_a_pseudo_frame, setup),
      cmocka_unit_test_setup(test_pseudo_frames_have_names_without_symbols_too, setup),
      cmocka_unit_test_setup(test_deeper_than_max_depth_ends_in_truncated_at_the_root, setup),
      cmocka_unit_test_setup(test_truncated_row_keeps_its_frames, setup),
      cmocka_unit_test_setup(test_strings_are_utf8_whatever_the_bytes_were, setup),
      cmocka_unit_test_setup(test_labels_are_text_or_a_number_with_a_unit, setup),
      cmocka_unit_test_setup(test_impossible_rows_fail_the_encode_and_say_why, setup),
      cmocka_unit_test_setup(test_every_failing_write_fails_the_encode, setup),
      cmocka_unit_test_setup(test_every_refused_chunk_of_memory_fails_the_encode, setup),
      cmocka_unit_test_setup(test_every_refused_piece_of_memory_fails_the_encode, setup),
      cmocka_unit_test_setup(test_own_check_and_a_saturated_value_agree, setup),
      cmocka_unit_test_setup(test_the_largest_row_fits, setup),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
