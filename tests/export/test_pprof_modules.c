/* SPDX-License-Identifier: MIT
 * test_pprof_modules.c - modules that came and went, and the names of functions, in what the encoder writes. */
#include <stdio.h>
#include <string.h>

#include "export_test.h"
#include "fake_modules.h"
#include "pprof.h"
#include "profile_fixture.h"
#include "symbols.h"

enum { PLACE = 0x7f1000000000, TEXT_BYTES = 0x10000 };

/* Functions under the names of operator new, and others; called by nobody, only their addresses and symbols matter. */
#define NAMED(function, symbol)      \
  int function(int) __asm__(symbol); \
  __attribute__((noinline)) int function(int x) { return x * 3 + (int)sizeof symbol; }
NAMED(new_plain, "_Znwm")
NAMED(new_array, "_Znam")
NAMED(new_nothrow, "_ZnwmRKSt9nothrow_t")
NAMED(new_array_nothrow, "_ZnamRKSt9nothrow_t")
NAMED(new_aligned, "_ZnwmSt11align_val_t")
NAMED(new_array_aligned, "_ZnamSt11align_val_t")
NAMED(new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t")
NAMED(new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t")
NAMED(not_new, "_Znwmx")
static __attribute__((noinline, used)) int quiet_function(int x) { return x * 5 + 1; }

static const struct hp_pprof_options OPTIONS = {.with_symbols = true, .max_depth = 128, .executable = "/opt/app"};

static uintptr_t inside(int (*function)(int)) { return (uintptr_t)function + 2; }

static int setup(void **state) {
  (void)state;
  fake_modules_reset();
  assert_non_null(fake_modules_add_loaded((uintptr_t)&quiet_function));
  return 0;
}

static struct hp_row row_in(const uintptr_t *pcs, uint32_t depth, const struct hp_module_set *modules) {
  return (struct hp_row){.pcs = pcs, .depth = depth, .modules = modules, .values = {1, 10, 1, 10}};
}

static struct hp_row row_of(const uintptr_t *pcs, uint32_t depth) { return row_in(pcs, depth, fake_modules_loaded()); }

static struct hp_row row_of_one(const uintptr_t *pcs, const struct hp_module *module) {
  return row_in(pcs, 1, fake_modules_set(module));
}

static struct hp_snapshot snapshot_of(const struct hp_row *rows, size_t n) {
  return (struct hp_snapshot){.rows = rows, .row_count = n, .kind = HP_KIND_FULL, .period_bytes = 1};
}

static struct hp_module *add_library(uintptr_t start, const char *path, uint8_t build_id) {
  return fake_modules_add((struct hp_module){.text_start = start,
                                             .text_end = start + TEXT_BYTES,
                                             .text_offset = 0x1000,
                                             .path = path,
                                             .build_id_size = 1,
                                             .build_id = {build_id}});
}

static void test_row_of_an_unloaded_library_still_belongs_to_it(void **state) {
  (void)state;
  const struct hp_module *first = add_library(PLACE, "/lib/first.so", 1);
  const struct hp_module *second = add_library(PLACE, "/lib/second.so", 2);
  const uintptr_t pcs[] = {PLACE + 0x101};
  struct hp_row rows[] = {row_of_one(pcs, first), row_of_one(pcs, second)};
  struct hp_snapshot snapshot = snapshot_of(rows, 2);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_string_equal(string_of(&decoded, mapping_of(&decoded, 0, 0)->filename), "/lib/first.so");
  assert_string_equal(string_of(&decoded, mapping_of(&decoded, 1, 0)->filename), "/lib/second.so");
  assert_ptr_not_equal(location_of(&decoded, 0, 0), location_of(&decoded, 1, 0));
  assert_int_equal(location_of(&decoded, 0, 0)->address, PLACE + 0x100);
  assert_int_equal(location_of(&decoded, 1, 0)->address, PLACE + 0x100);
  decoded_free(&decoded);
}

static void test_library_unloaded_while_the_encode_runs_is_still_found(void **state) {
  (void)state;
  struct hp_module *leaving = add_library(PLACE, "/lib/leaving.so", 1);
  const uintptr_t pcs[] = {PLACE + 0x101, 0x4321};
  struct hp_row row = row_in(pcs, 2, fake_modules_set(leaving));
  leaving->is_gone = true;
  add_library(PLACE, "/lib/arriving.so", 2);
  struct hp_snapshot snapshot = snapshot_of(&row, 1);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_string_equal(string_of(&decoded, mapping_of(&decoded, 0, 0)->filename), "/lib/leaving.so");
  assert_null(mapping_of(&decoded, 0, 1));
  decoded_free(&decoded);
}

static void test_one_library_in_two_sets_is_one_location(void **state) {
  (void)state;
  const struct hp_module *first = add_library(PLACE, "/lib/first.so", 1);
  const uintptr_t pcs[] = {PLACE + 0x101};
  struct hp_row rows[] = {row_of_one(pcs, first), row_of(pcs, 1), row_of_one(pcs, first)};
  struct hp_snapshot snapshot = snapshot_of(rows, 3);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(decoded.profile->n_location, 1);
  decoded_free(&decoded);
}

static void test_same_build_loaded_again_over_itself_is_one_mapping(void **state) {
  (void)state;
  const struct hp_module *first = add_library(PLACE, "/lib/plugin.so", 1);
  const struct hp_module *second = add_library(PLACE, "/lib/plugin.so", 1);
  /* moved by three pages: overlaps, but is the same code */
  const struct hp_module *third = add_library(PLACE + 0x3000, "/lib/plugin.so", 1);
  const uintptr_t old[] = {PLACE + 0x101};
  const uintptr_t moved[] = {PLACE + 0x3000 + 0x101};
  struct hp_row rows[] = {row_of_one(old, first), row_of_one(old, second), row_of_one(moved, third)};
  struct hp_snapshot snapshot = snapshot_of(rows, 3);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(decoded.profile->n_mapping, 2);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(location_of(&decoded, i, 0)->mapping_id, 2);
    assert_int_equal(location_of(&decoded, i, 0)->address, PLACE + 0x100);
  }
  decoded_free(&decoded);
}

static void test_other_builds_of_a_path_never_overlap_in_the_file(void **state) {
  (void)state;
  const uintptr_t pcs[] = {PLACE + 0x2001};
  struct hp_row rows[40];
  for (uint32_t i = 0; i < 40; i++) {
    rows[i] = row_of_one(pcs, add_library(PLACE + 0x1000 * (i % 3), "/lib/plugin.so", (uint8_t)(i % 7)));
  }
  struct hp_snapshot snapshot = snapshot_of(rows, 40);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  const Perftools__Profiles__Profile *profile = decoded.profile;
  for (size_t a = 1; a < profile->n_mapping; a++) {
    for (size_t b = a + 1; b < profile->n_mapping; b++) {
      assert_true(profile->mapping[a]->memory_start >= profile->mapping[b]->memory_limit ||
                  profile->mapping[b]->memory_start >= profile->mapping[a]->memory_limit);
    }
  }
  for (size_t i = 0; i < 40; i++) {
    const Perftools__Profiles__Mapping *mapping = mapping_of(&decoded, i, 0);
    char want[3];
    snprintf(want, sizeof want, "%02x", (unsigned)(i % 7));
    assert_string_equal(string_of(&decoded, mapping->build_id), want);
    /* The place within the file is what readers look up: it is that of the module. */
    assert_int_equal(location_of(&decoded, i, 0)->address - mapping->memory_start, 0x2000 - 0x1000 * (i % 3));
  }
  assert_true(profile->n_mapping <= 1 + 7); /* a build that comes again is the mapping it was */
  decoded_free(&decoded);
}

static void test_only_modules_in_use_are_written(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 300; i++) add_library(PLACE + i * 0x100000ul, "/lib/many.so", (uint8_t)i);
  const uintptr_t pcs[] = {PLACE + 200 * 0x100000ul + 5};
  struct hp_row row = row_of(pcs, 1);
  struct hp_snapshot snapshot = snapshot_of(&row, 1);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(decoded.profile->n_mapping, 2);
  assert_string_equal(string_of(&decoded, decoded.profile->mapping[1]->build_id), "c8");
  decoded_free(&decoded);
}

static void test_modules_beyond_the_cache_of_recent_ones_are_found(void **state) {
  (void)state;
  enum { MODULES = 40, DEPTH = 400 };
  for (uint32_t i = 0; i < MODULES; i++) add_library(PLACE + i * 0x100000ul, "/lib/many.so", (uint8_t)i);
  uintptr_t pcs[DEPTH];
  for (size_t i = 0; i < DEPTH; i++) pcs[i] = PLACE + (i * 7 % MODULES) * 0x100000ul + 5 + i;
  struct hp_row row = row_of(pcs, DEPTH);
  struct hp_snapshot snapshot = snapshot_of(&row, 1);
  struct hp_pprof_options options = OPTIONS;
  options.max_depth = DEPTH;
  struct decoded decoded = encode_and_decode(&snapshot, &options);
  for (size_t i = 0; i < DEPTH; i++) {
    char want[3];
    snprintf(want, sizeof want, "%02x", (unsigned)(i * 7 % MODULES));
    assert_string_equal(string_of(&decoded, mapping_of(&decoded, 0, i)->build_id), want);
  }
  decoded_free(&decoded);
}

static void expect_frames(const uintptr_t *pcs, uint32_t depth, bool with_symbols, uint32_t left_out) {
  struct hp_row row = row_of(pcs, depth);
  struct hp_snapshot snapshot = snapshot_of(&row, 1);
  struct hp_pprof_options options = OPTIONS;
  options.with_symbols = with_symbols;
  struct decoded decoded = encode_and_decode(&snapshot, &options);
  assert_int_equal(decoded.profile->sample[0]->n_location_id, depth - left_out);
  for (uint32_t i = left_out; i < depth; i++) {
    assert_int_equal(location_of(&decoded, 0, i - left_out)->address, pcs[i] - 1);
  }
  assert_int_equal(decoded.profile->n_location, depth - left_out);
  decoded_free(&decoded);
}

static void test_operator_new_is_left_out_at_the_leaf(void **state) {
  (void)state;
  int (*const forms[])(int) = {new_plain,   new_array,         new_nothrow,         new_array_nothrow,
                               new_aligned, new_array_aligned, new_aligned_nothrow, new_array_aligned_nothrow};
  for (int with_symbols = 0; with_symbols < 2; with_symbols++) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
      const uintptr_t pcs[] = {inside(forms[i]), inside(quiet_function), inside(new_plain) + 1};
      expect_frames(pcs, 3, with_symbols != 0, 1); /* at the root end it stays */
    }
    const uintptr_t chain[] = {inside(new_plain), inside(new_array), inside(new_array_nothrow), inside(quiet_function)};
    expect_frames(chain, 4, with_symbols != 0, 3);
    const uintptr_t alone[] = {inside(new_plain)};
    expect_frames(alone, 1, with_symbols != 0, 0);
    const uintptr_t only[] = {inside(new_plain), inside(new_array)};
    expect_frames(only, 2, with_symbols != 0, 1);
    const uintptr_t other[] = {inside(not_new), inside(quiet_function)};
    expect_frames(other, 2, with_symbols != 0, 0);
  }
}

static void test_operator_new_does_not_count_towards_the_depth(void **state) {
  (void)state;
  const uintptr_t pcs[] = {inside(new_plain), inside(quiet_function), inside(quiet_function) + 1};
  struct hp_row row = row_of(pcs, 3);
  struct hp_snapshot snapshot = snapshot_of(&row, 1);
  struct hp_pprof_options options = OPTIONS;
  options.max_depth = 2;
  struct decoded decoded = encode_and_decode(&snapshot, &options);
  assert_int_equal(decoded.profile->sample[0]->n_location_id, 2);
  assert_int_equal(location_of(&decoded, 0, 1)->address, pcs[2] - 1);
  decoded_free(&decoded);
}

static void test_names_of_static_functions_are_there(void **state) {
  (void)state;
  const uintptr_t pcs[] = {inside(quiet_function), inside(not_new)};
  struct hp_row row = row_of(pcs, 2);
  struct hp_snapshot snapshot = snapshot_of(&row, 1);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_string_equal(frame_of(&decoded, 0, 0), "quiet_function");
  assert_string_equal(frame_of(&decoded, 0, 1), "_Znwmx");
  assert_int_equal(decoded.profile->n_function, 2);
  const Perftools__Profiles__Function *function = decoded.profile->function[0];
  assert_int_equal(function->system_name, function->name);
  decoded_free(&decoded);
}

static void test_two_addresses_of_a_function_share_it(void **state) {
  (void)state;
  const uintptr_t pcs[] = {inside(quiet_function), inside(quiet_function) + 1};
  struct hp_row row = row_of(pcs, 2);
  struct hp_snapshot snapshot = snapshot_of(&row, 1);
  struct decoded decoded = encode_and_decode(&snapshot, &OPTIONS);
  assert_int_equal(decoded.profile->n_location, 2);
  assert_int_equal(decoded.profile->n_function, 1);
  decoded_free(&decoded);
}

static void test_without_symbols_there_are_no_names(void **state) {
  (void)state;
  const uintptr_t pcs[] = {inside(quiet_function)};
  struct hp_row row = row_of(pcs, 1);
  struct hp_snapshot snapshot = snapshot_of(&row, 1);
  struct hp_pprof_options options = OPTIONS;
  options.with_symbols = false;
  struct decoded decoded = encode_and_decode(&snapshot, &options);
  assert_int_equal(decoded.profile->n_function, 0);
  assert_int_equal(location_of(&decoded, 0, 0)->n_line, 0);
  decoded_free(&decoded);
}

static void test_which_names_are_operator_new(void **state) {
  (void)state;
  const char *const yes[] = {
      "_Znwm", "_Znam", "_Znwj", "_Znaj", "_ZnwmRKSt9nothrow_t", "_Znwm.cold", "_ZnajSt11align_val_t"};
  const char *const no[] = {"",       "_Zn",  "_Znw",    "_Znwx",     "_Znwmm", "_ZnwmRK",
                            "_ZdlPv", "Znwm", "_Z3newm", "_ZN1AnwEm", "malloc"};
  for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) assert_true(hp_symbols_is_operator_new(yes[i]));
  for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) assert_false(hp_symbols_is_operator_new(no[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_row_of_an_unloaded_library_still_belongs_to_it, setup),
      cmocka_unit_test_setup(test_library_unloaded_while_the_encode_runs_is_still_found, setup),
      cmocka_unit_test_setup(test_one_library_in_two_sets_is_one_location, setup),
      cmocka_unit_test_setup(test_same_build_loaded_again_over_itself_is_one_mapping, setup),
      cmocka_unit_test_setup(test_other_builds_of_a_path_never_overlap_in_the_file, setup),
      cmocka_unit_test_setup(test_only_modules_in_use_are_written, setup),
      cmocka_unit_test_setup(test_modules_beyond_the_cache_of_recent_ones_are_found, setup),
      cmocka_unit_test_setup(test_operator_new_is_left_out_at_the_leaf, setup),
      cmocka_unit_test_setup(test_operator_new_does_not_count_towards_the_depth, setup),
      cmocka_unit_test_setup(test_names_of_static_functions_are_there, setup),
      cmocka_unit_test_setup(test_two_addresses_of_a_function_share_it, setup),
      cmocka_unit_test_setup(test_without_symbols_there_are_no_names, setup),
      cmocka_unit_test_setup(test_which_names_are_operator_new, setup),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
