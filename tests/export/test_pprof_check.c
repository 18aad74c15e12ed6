/* SPDX-License-Identifier: MIT
 * test_pprof_check.c - a valid profile that is made wrong in one way, packed by protobuf-c; and any bytes at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export_test.h"
#include "pprof_check.h"
#include "profile.pb-c.h"
#include "rng.h"

enum { STRINGS = 11 };

/* A whole valid profile: two rows, two locations, one function, one mapping. */
struct model {
  Perftools__Profiles__Profile profile;
  Perftools__Profiles__ValueType types[5], *type_list[5], period_type;
  Perftools__Profiles__Sample samples[2], *sample_list[2];
  uint64_t ids[2][2];
  int64_t values[2][5];
  Perftools__Profiles__Label label, *label_list[1];
  Perftools__Profiles__Mapping mapping, *mapping_list[1];
  Perftools__Profiles__Location locations[2], *location_list[2];
  Perftools__Profiles__Line line, *line_list[1];
  Perftools__Profiles__Function function, *function_list[1];
  char *strings[STRINGS];
  int64_t comments[1];
};

static void init_types(struct model *model) {
  for (size_t i = 0; i < 5; i++) {
    perftools__profiles__value_type__init(&model->types[i]);
    model->types[i].type = (int64_t[]){1, 3, 4, 5, 1}[i];
    model->types[i].unit = i % 2 == 0 ? 2 : 6;
    model->type_list[i] = &model->types[i];
  }
  model->profile.n_sample_type = 4;
  model->profile.sample_type = model->type_list;
  model->profile.default_sample_type = 5;
  perftools__profiles__value_type__init(&model->period_type);
  model->period_type.type = 7;
  model->period_type.unit = 6;
  model->profile.period_type = &model->period_type;
}

static void init_samples(struct model *model) {
  for (size_t i = 0; i < 2; i++) {
    perftools__profiles__sample__init(&model->samples[i]);
    model->ids[i][0] = 1 + i;
    model->ids[i][1] = 2 - i;
    memcpy(model->values[i], (int64_t[]){10, 160, 5, 80, 1}, sizeof model->values[i]);
    model->samples[i].n_location_id = 2;
    model->samples[i].location_id = model->ids[i];
    model->samples[i].n_value = 4;
    model->samples[i].value = model->values[i];
    model->sample_list[i] = &model->samples[i];
  }
  perftools__profiles__label__init(&model->label);
  model->label.key = 6;
  model->label.num_unit = 6;
  model->label_list[0] = &model->label;
  model->samples[0].n_label = 1;
  model->samples[0].label = model->label_list;
  model->profile.n_sample = 2;
  model->profile.sample = model->sample_list;
}

static void init_model(struct model *model) {
  static char *const STRING_TABLE[STRINGS] = {
      "",      "alloc_objects", "count",  "alloc_space", "inuse_objects", "inuse_space",
      "bytes", "space",         "/opt/a", "main",        "comment"};
  memset(model, 0, sizeof *model);
  perftools__profiles__profile__init(&model->profile);
  memcpy(model->strings, STRING_TABLE, sizeof STRING_TABLE);
  init_types(model);
  init_samples(model);
  perftools__profiles__mapping__init(&model->mapping);
  model->mapping.id = 1;
  model->mapping.memory_start = 0x1000;
  model->mapping.memory_limit = 0x2000;
  model->mapping.filename = 8;
  model->mapping_list[0] = &model->mapping;
  perftools__profiles__line__init(&model->line);
  model->line.function_id = 1;
  model->line_list[0] = &model->line;
  for (size_t i = 0; i < 2; i++) {
    perftools__profiles__location__init(&model->locations[i]);
    model->locations[i].id = i + 1;
    model->location_list[i] = &model->locations[i];
  }
  model->locations[0].mapping_id = 1;
  model->locations[0].address = 0x1000;
  model->locations[1].n_line = 1;
  model->locations[1].line = model->line_list;
  perftools__profiles__function__init(&model->function);
  model->function.id = 1;
  model->function.name = model->function.system_name = 9;
  model->function_list[0] = &model->function;
  model->comments[0] = 10;
  model->profile.n_mapping = 1;
  model->profile.mapping = model->mapping_list;
  model->profile.n_location = 2;
  model->profile.location = model->location_list;
  model->profile.n_function = 1;
  model->profile.function = model->function_list;
  model->profile.n_string_table = STRINGS;
  model->profile.string_table = model->strings;
  model->profile.n_comment = 1;
  model->profile.comment = model->comments;
}

static void expect_buffer(const void *bytes, size_t n, enum hp_profile_kind kind, const char *want) {
  struct hp_arena arena = {0};
  const char *fault = NULL;
  int status = hp_pprof_check_buffer(bytes, n, kind, &arena, &fault);
  assert_string_equal(fault, want);
  assert_int_equal(status, want[0] == 0 ? 0 : -EBADMSG);
  hp_arena_reset(&arena);
}

static void expect_kind(const struct model *model, enum hp_profile_kind kind, const char *want) {
  size_t n = perftools__profiles__profile__get_packed_size(&model->profile);
  uint8_t *bytes = malloc(n);
  perftools__profiles__profile__pack(&model->profile, bytes);
  expect_buffer(bytes, n, kind, want);
  free(bytes);
}

static void expect(const struct model *model, const char *want) { expect_kind(model, HP_KIND_FULL, want); }

static void test_valid_profile_passes(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  expect(&model, "");
  expect_kind(&model, HP_KIND_PEAK, "");
}

static void test_sample_types_are_counted_and_compared(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.profile.n_sample_type = 3;
  expect(&model, "invalid heap profile: got 3 sample types, want 4");
  model.profile.n_sample_type = 5;
  expect(&model, "invalid heap profile: got 5 sample types, want 4");
  model.profile.n_sample_type = 0;
  expect(&model, "invalid heap profile: got 0 sample types, want 4");
  init_model(&model);
  model.types[1].type = 4;
  model.types[2].type = 3;
  expect(&model, "invalid heap profile: got \"inuse_objects\" sample type at index 1, want \"alloc_space\"");
  init_model(&model);
  model.types[3].unit = 2;
  expect(&model, "invalid heap profile: got \"count\" unit at index 3, want \"bytes\"");
}

static void test_two_columns_are_wanted_of_alloc_and_delta(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  expect_kind(&model, HP_KIND_ALLOC, "invalid heap profile: got 4 sample types, want 2");
  model.profile.n_sample_type = 2;
  model.profile.default_sample_type = 3;
  model.samples[0].n_value = model.samples[1].n_value = 2;
  expect_kind(&model, HP_KIND_ALLOC, "");
  expect_kind(&model, HP_KIND_DELTA, "");
  expect(&model, "invalid heap profile: got 2 sample types, want 4");
}

static void test_value_counts_must_match_types(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.samples[1].n_value = 3;
  expect(&model, "mismatch: sample has 3 values vs. 4 types");
  model.samples[1].n_value = 5;
  expect(&model, "mismatch: sample has 5 values vs. 4 types");
  model.samples[1].n_value = 0;
  expect(&model, "mismatch: sample has 0 values vs. 4 types");
}

static void test_impossible_values_are_found(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.values[1][3] = 161;
  expect(&model, "invalid heap profile: sample 1 has more in use than allocated");
  model.values[1][3] = -1;
  expect(&model, "invalid heap profile: sample 1 has a negative value at index 3");
  memset(model.values[1], 0, sizeof model.values[1]);
  expect(&model, "invalid heap profile: sample 1 is all zero");
  init_model(&model);
  expect_kind(&model, HP_KIND_HEAP, "invalid heap profile: sample 0 has alloc values in a heap profile");
  for (size_t i = 0; i < 2; i++) model.values[i][0] = model.values[i][1] = 0;
  expect_kind(&model, HP_KIND_HEAP, "");
  expect(&model, "invalid heap profile: sample 0 has more in use than allocated");
}

static void test_references_must_resolve(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.ids[0][1] = 3;
  expect(&model, "invalid heap profile: sample 0: no location 3");
  model.ids[0][1] = 0;
  expect(&model, "invalid heap profile: sample 0: no location 0");
  init_model(&model);
  model.locations[0].mapping_id = 2;
  expect(&model, "invalid heap profile: location 1: no mapping 2");
  init_model(&model);
  model.line.function_id = 2;
  expect(&model, "invalid heap profile: location 2: no function 2");
  model.line.function_id = 0;
  expect(&model, "invalid heap profile: location 2: no function 0");
}

static void test_ids_must_be_one_two_three(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.locations[1].id = 1;
  expect(&model, "invalid heap profile: location id 1, want 2");
  init_model(&model);
  model.function.id = 2;
  expect(&model, "invalid heap profile: function id 2, want 1");
  init_model(&model);
  model.mapping.id = 0;
  expect(&model, "invalid heap profile: mapping id 0, want 1");
}

static void test_string_numbers_must_be_in_the_table(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.mapping.filename = STRINGS;
  expect(&model, "invalid heap profile: string index 11, table has 11");
  init_model(&model);
  model.function.system_name = 99;
  expect(&model, "invalid heap profile: string index 99, table has 11");
  init_model(&model);
  model.comments[0] = -1;
  expect(&model, "invalid heap profile: string index 18446744073709551615, table has 11");
  init_model(&model);
  model.types[2].unit = 12;
  expect(&model, "invalid heap profile: string index 12, table has 11");
  init_model(&model);
  model.label.key = 12;
  expect(&model, "invalid heap profile: string index 12, table has 11");
}

static void test_strings_must_be_utf8_and_begin_with_the_empty_one(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.strings[9] = "ma\xFFn";
  expect(&model, "invalid heap profile: string 9 is not UTF-8");
  init_model(&model);
  model.strings[0] = "x";
  expect(&model, "invalid heap profile: string_table[0] is not empty");
}

static void test_locations_lie_in_their_mapping_and_have_something(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.locations[0].address = 0x2000;
  expect(&model, "invalid heap profile: location 1 lies outside its mapping 1");
  model.locations[0].address = 0xFFF;
  expect(&model, "invalid heap profile: location 1 lies outside its mapping 1");
  init_model(&model);
  model.locations[1].n_line = 0;
  expect(&model, "invalid heap profile: location 2 has neither address nor function");
  init_model(&model);
  model.mapping.memory_limit = model.mapping.memory_start;
  expect(&model, "invalid heap profile: mapping 1 is empty");
  init_model(&model);
  model.profile.n_mapping = 0;
  model.locations[0].mapping_id = 0;
  expect(&model, "invalid heap profile: no mapping");
}

static void test_rows_have_a_stack_and_whole_labels(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.samples[1].n_location_id = 0;
  expect(&model, "invalid heap profile: sample 1 has no stack");
  init_model(&model);
  model.label.num_unit = 0; /* a number that is 0 and has no unit: readers drop it */
  expect(&model, "invalid heap profile: sample 0 has a label without key or value");
}

static void test_header_is_complete(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  model.profile.default_sample_type = 1;
  expect(&model, "invalid heap profile: default sample type is \"alloc_objects\", want \"inuse_space\"");
  init_model(&model);
  model.profile.period_type = NULL;
  expect(&model, "invalid heap profile: period type is not space/bytes");
  init_model(&model);
  model.profile.n_string_table = 0;
  expect(&model, "invalid heap profile: string index 1, table has 0");
  expect_buffer("", 0, HP_KIND_FULL, "invalid heap profile: got 0 sample types, want 4");
}

static void test_every_cut_of_a_profile_is_refused_or_whole(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  size_t n = perftools__profiles__profile__get_packed_size(&model.profile);
  uint8_t *bytes = malloc(n);
  perftools__profiles__profile__pack(&model.profile, bytes);
  for (size_t cut = 0; cut < n; cut++) {
    struct hp_arena arena = {0};
    const char *fault;
    uint8_t *copy = malloc(cut + 1); /* so that a sanitizer sees the end */
    memcpy(copy, bytes, cut);
    int status = hp_pprof_check_buffer(copy, cut, HP_KIND_FULL, &arena, &fault);
    assert_true(status == 0 || (status == -EBADMSG && fault[0] != 0));
    free(copy);
    hp_arena_reset(&arena);
  }
  free(bytes);
}

static void test_any_bytes_give_an_answer(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  size_t n = perftools__profiles__profile__get_packed_size(&model.profile);
  uint8_t *bytes = malloc(n);
  struct hp_rng rng = {.state = 7};
  struct hp_arena arena = {0};
  for (int round = 0; round < 50000; round++) {
    perftools__profiles__profile__pack(&model.profile, bytes);
    for (uint64_t k = hp_rng_next(&rng) % 4; k < 4; k++) bytes[hp_rng_next(&rng) % n] = (uint8_t)hp_rng_next(&rng);
    const char *fault;
    int status = hp_pprof_check_buffer(bytes, n, HP_KIND_FULL, &arena, &fault);
    assert_true(status == 0 || (status == -EBADMSG && fault[0] != 0));
    if (round % 64 == 0) hp_arena_reset(&arena);
  }
  hp_arena_reset(&arena);
  free(bytes);
}

static void test_pieces_must_be_defined_before_they_are_used(void **state) {
  (void)state;
  struct model model;
  init_model(&model);
  size_t n = perftools__profiles__profile__get_packed_size(&model.profile);
  uint8_t *bytes = malloc(n);
  perftools__profiles__profile__pack(&model.profile, bytes);
  struct hp_arena arena = {0};
  struct hp_pprof_check *check = malloc(sizeof *check);
  hp_pprof_check_begin(check, HP_KIND_FULL, &arena);
  assert_int_equal(hp_pprof_check_feed(check, bytes, n), -EBADMSG); /* by field number: types before strings */
  assert_string_equal(check->fault, "invalid heap profile: string index 1, table has 0");
  free(check);
  hp_arena_reset(&arena);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_valid_profile_passes),
      cmocka_unit_test(test_sample_types_are_counted_and_compared),
      cmocka_unit_test(test_two_columns_are_wanted_of_alloc_and_delta),
      cmocka_unit_test(test_value_counts_must_match_types),
      cmocka_unit_test(test_impossible_values_are_found),
      cmocka_unit_test(test_references_must_resolve),
      cmocka_unit_test(test_ids_must_be_one_two_three),
      cmocka_unit_test(test_string_numbers_must_be_in_the_table),
      cmocka_unit_test(test_strings_must_be_utf8_and_begin_with_the_empty_one),
      cmocka_unit_test(test_locations_lie_in_their_mapping_and_have_something),
      cmocka_unit_test(test_rows_have_a_stack_and_whole_labels),
      cmocka_unit_test(test_header_is_complete),
      cmocka_unit_test(test_every_cut_of_a_profile_is_refused_or_whole),
      cmocka_unit_test(test_any_bytes_give_an_answer),
      cmocka_unit_test(test_pieces_must_be_defined_before_they_are_used),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
