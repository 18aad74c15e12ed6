/* SPDX-License-Identifier: MIT
 * test_symbols.c - which file speaks for a module, and what is remembered. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "elf_fixture.h"
#include "export_test.h"
#include "fake_memory.h"
#include "fake_modules.h"
#include "symbols.h"

enum { BIAS = 0x7f2000000000, FUNCTION_AT = 0x1000 };

static char path[64];

static int setup(void **state) {
  (void)state;
  fake_modules_reset();
  fake_memory_fail_at(0);
  elf_fixture_path(path);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

/* A library at `path` with one function, and its module. */
static struct hp_module *make_library(const char *function) {
  const struct fixture_symbol symbol = {.name = function,
                                        .value = FUNCTION_AT,
                                        .size = 0x100,
                                        .type = STT_FUNC,
                                        .binding = STB_LOCAL,
                                        .section = FIXTURE_TEXT};
  struct elf_fixture fixture = elf_fixture_make(&symbol, 1, NULL, 0);
  elf_fixture_write(&fixture, path, fixture.size);
  elf_fixture_free(&fixture);
  struct hp_module module = {.load_bias = BIAS,
                             .text_start = BIAS + 0x1000,
                             .text_end = BIAS + 0x3000,
                             .build_id_size = sizeof FIXTURE_BUILD_ID,
                             .path = path};
  memcpy(module.build_id, FIXTURE_BUILD_ID, sizeof FIXTURE_BUILD_ID);
  return fake_modules_add(module);
}

/* The name at an address, or "?". */
static const char *name_at(const struct hp_module *module, uintptr_t address, const char *executable) {
  static char name[128];
  struct hp_arena scratch = {0};
  struct hp_symbol_query query = {.address = address, .module = module, .name = "never set"};
  hp_symbols_resolve(&query, 1, executable, &scratch);
  snprintf(name, sizeof name, "%s", query.name != NULL ? query.name : "?");
  hp_arena_reset(&scratch);
  return name;
}

static void test_name_comes_from_the_file_of_the_module(void **state) {
  (void)state;
  const struct hp_module *library = make_library("plugin_alloc");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "plugin_alloc");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 0x100, NULL), "?");
  assert_string_equal(name_at(NULL, BIAS + FUNCTION_AT + 4, NULL), "?");
}

static void test_file_of_another_build_is_not_believed(void **state) {
  (void)state;
  struct hp_module *library = make_library("wrong");
  library->build_id[0] ^= 1;
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "?");
  struct hp_module *longer = make_library("wrong");
  longer->build_id_size++;
  assert_string_equal(name_at(longer, BIAS + FUNCTION_AT + 4, NULL), "?");
}

static void test_answers_are_remembered_when_the_file_is_gone(void **state) {
  (void)state;
  const struct hp_module *library = make_library("kept");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "kept");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 0x200, NULL), "?");
  const struct fixture_symbol symbol = {
      .name = "late", .value = FUNCTION_AT, .size = 0x900, .type = STT_FUNC, .section = FIXTURE_TEXT};
  struct elf_fixture fixture = elf_fixture_make(&symbol, 1, NULL, 0);
  elf_fixture_write(&fixture, path, fixture.size); /* same build id, other names: nobody looks again */
  elf_fixture_free(&fixture);
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "kept");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 0x200, NULL), "?");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 5, NULL), "late"); /* an address never asked for */
}

static void test_forgotten_answers_are_looked_up_again(void **state) {
  (void)state;
  const struct hp_module *library = make_library("before");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "before");
  hp_symbols_forget();
  assert_int_equal(hp_symbols_bytes(), 0);
  make_library("after");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "after");
}

static void test_same_address_in_two_modules_has_two_answers(void **state) {
  (void)state;
  const struct hp_module *first = make_library("first");
  assert_string_equal(name_at(first, BIAS + FUNCTION_AT + 4, NULL), "first");
  const struct hp_module *second = make_library("second");
  assert_string_equal(name_at(second, BIAS + FUNCTION_AT + 4, NULL), "second");
  assert_string_equal(name_at(first, BIAS + FUNCTION_AT + 4, NULL), "first");
}

static void test_many_queries_of_many_modules_in_any_order(void **state) {
  (void)state;
  enum { MODULES = 5, EACH = 100 };
  struct hp_symbol_query queries[MODULES * EACH];
  char paths[MODULES][80];
  for (size_t m = 0; m < MODULES; m++) {
    char name[32];
    snprintf(name, sizeof name, "function_of_%zu", m);
    struct hp_module *library = make_library(name);
    snprintf(paths[m], sizeof paths[m], "%s.%zu", path, m);
    assert_int_equal(rename(path, paths[m]), 0);
    library->path = paths[m];
    for (size_t i = 0; i < EACH; i++) {
      queries[(i * 37 % EACH) * MODULES + m] =
          (struct hp_symbol_query){.module = library, .address = BIAS + FUNCTION_AT + 3 * i};
    }
  }
  struct hp_arena scratch = {0};
  hp_symbols_resolve(queries, MODULES * EACH, NULL, &scratch);
  for (size_t q = 0; q < MODULES * EACH; q++) {
    char want[32];
    snprintf(want, sizeof want, "function_of_%zu", q % MODULES);
    if (queries[q].address >= BIAS + FUNCTION_AT + 0x100) {
      assert_null(queries[q].name);
    } else {
      assert_string_equal(queries[q].name, want);
    }
  }
  hp_arena_reset(&scratch);
  for (size_t m = 0; m < MODULES; m++) unlink(paths[m]);
}

static void test_program_is_read_though_its_path_is_wrong(void **state) {
  (void)state;
  const struct hp_module *program = fake_modules_add_loaded((uintptr_t)&make_library);
  assert_true(program->is_executable);
  assert_string_equal(name_at(program, (uintptr_t)&make_library + 1, "/nowhere (deleted)"), "make_library");
}

static void test_program_run_by_the_loader_is_found_by_its_path(void **state) {
  (void)state;
  struct hp_module *program = make_library("main"); /* /proc/self/exe is another file */
  program->is_executable = true;
  program->path = "";
  assert_string_equal(name_at(program, BIAS + FUNCTION_AT + 4, path), "main");
}

static void test_without_a_build_id_the_headers_in_memory_decide(void **state) {
  (void)state;
  struct hp_module *program = fake_modules_add_loaded((uintptr_t)&make_library);
  program->build_id_size = 0;
  assert_string_equal(name_at(program, (uintptr_t)&make_library + 1, NULL), "make_library");
  struct hp_module *other = fake_modules_add_loaded((uintptr_t)&make_library);
  other->build_id_size = 0;
  other->is_executable = false;
  other->path = path; /* another file */
  struct hp_module *library = make_library("elsewhere");
  assert_string_equal(name_at(other, (uintptr_t)&make_library + 1, NULL), "?");
  library->build_id_size = 0; /* nothing is mapped at its place: an error, not a fault */
  library->map_start = 0x1000;
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "?");
}

static void test_no_descriptor_left_is_not_remembered_as_unknown(void **state) {
  (void)state;
  const struct hp_module *library = make_library("later");
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  const struct rlimit none = {.rlim_cur = 0, .rlim_max = old.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  const char *name = name_at(library, BIAS + FUNCTION_AT + 4, NULL);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
  assert_string_equal(name, "?");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "later");
}

static void test_file_without_symbols_is_not_read_again(void **state) {
  (void)state;
  const struct hp_module *library = make_library("");
  struct elf_fixture empty = elf_fixture_make(NULL, 0, NULL, 0);
  elf_fixture_write(&empty, path, empty.size);
  elf_fixture_free(&empty);
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "?");
  make_library("unread");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "?");
}

static void test_no_memory_is_not_remembered_as_unknown(void **state) {
  (void)state;
  const struct hp_module *library = make_library("with_memory");
  for (unsigned k = 1; k < 6; k++) {
    fake_memory_fail_at(k);
    struct hp_arena scratch = {.chunk_bytes = 4096};
    struct hp_symbol_query query = {.address = BIAS + FUNCTION_AT + k, .module = library};
    hp_symbols_resolve(&query, 1, NULL, &scratch);
    fake_memory_fail_at(0);
    assert_true(query.name == NULL || strcmp(query.name, "with_memory") == 0);
    hp_arena_reset(&scratch);
    assert_string_equal(name_at(library, BIAS + FUNCTION_AT + k, NULL), "with_memory");
  }
}

static void test_near_the_ceiling_no_new_name_is_looked_for(void **state) {
  (void)state;
  const struct hp_module *library = make_library("spare");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 1, NULL), "spare");
  fake_memory_fill(true);
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 1, NULL), "spare");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 2, NULL), "?");
  fake_memory_fill(false);
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 2, NULL), "spare"); /* not remembered as unknown */
}

static void test_a_hundred_libraries_take_the_scratch_of_one(void **state) {
  (void)state;
  enum { LIBRARIES = 100 };
  struct hp_symbol_query queries[LIBRARIES];
  size_t mapped_bytes[2];
  for (size_t i = 0; i < LIBRARIES; i++) {
    queries[i] = (struct hp_symbol_query){.address = BIAS + FUNCTION_AT + 9, .module = make_library("many")};
  }
  for (size_t several = 0; several < 2; several++) {
    struct hp_arena scratch = {.chunk_bytes = 4096};
    hp_symbols_resolve(&queries[several], several == 0 ? 1 : LIBRARIES - 1, NULL, &scratch);
    mapped_bytes[several] = scratch.mapped_bytes;
    hp_arena_reset(&scratch);
  }
  for (size_t i = 0; i < LIBRARIES; i++) assert_string_equal(queries[i].name, "many");
  assert_true(mapped_bytes[1] < mapped_bytes[0] + 16384);
}

static void test_no_descriptor_is_left_open(void **state) {
  (void)state;
  int before = dup(0);
  close(before);
  struct hp_module *library = make_library("open");
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 4, NULL), "open");
  library->build_id[1] ^= 1;
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 5, NULL), "?");
  library->build_id_size = 0;
  assert_string_equal(name_at(library, BIAS + FUNCTION_AT + 6, NULL), "?");
  int after = dup(0);
  close(after);
  assert_int_equal(before, after);
}

static void test_vdso_is_read_from_memory(void **state) {
  (void)state;
  uintptr_t start = getauxval(AT_SYSINFO_EHDR);
  if (start == 0) skip();
#if defined(__aarch64__) /* qemu-user 10 moves all of its vDSO's addresses but those in .symtab */
  const Elf64_Phdr *segment = (const void *)(start + ((const Elf64_Ehdr *)start)->e_phoff);
  while (segment->p_type != PT_LOAD) segment++;
  if (segment->p_vaddr == start) skip();
#endif
  const struct hp_module *vdso = fake_modules_add_loaded(start);
  assert_non_null(vdso);
  assert_true(vdso->is_vdso);
  unsigned named = 0;
  for (uintptr_t at = vdso->text_start; at < vdso->text_end; at += 16) named += strcmp(name_at(vdso, at, NULL), "?") != 0;
  assert_true(named > 0);
}

static void test_names_survive_the_ceiling_for_this_dump(void **state) {
  (void)state;
  enum { QUERIES = 20000 };
  struct hp_symbol_query *queries = calloc(2 * QUERIES, sizeof *queries);
  const struct hp_module *libc = fake_modules_add_loaded((uintptr_t)&printf);
  struct hp_arena scratch = {.chunk_bytes = 32 * 1024 * 1024};
  assert_non_null(hp_arena_alloc(&scratch, 1));
  for (size_t i = 0; i < QUERIES; i++) {
    queries[i] = (struct hp_symbol_query){.module = libc, .address = libc->text_start + 64 * i};
    queries[QUERIES + i] = queries[i];
  }
  size_t bytes = hp_symbols_bytes();
  fake_memory_fail_at(1);
  hp_symbols_resolve(queries, QUERIES, NULL, &scratch);
  assert_int_equal(hp_symbols_bytes(), bytes);
  fake_memory_fail_at(0);
  hp_symbols_resolve(queries + QUERIES, QUERIES, NULL, &scratch);
  assert_true(hp_symbols_bytes() > bytes);
  size_t named = 0;
  for (size_t i = 0; i < QUERIES; i++) {
    const char *a = queries[i].name != NULL ? queries[i].name : "";
    const char *b = queries[QUERIES + i].name != NULL ? queries[QUERIES + i].name : "";
    assert_string_equal(a, b);
    named += a[0] != 0;
  }
  assert_true(named > QUERIES / 10);
  hp_arena_reset(&scratch);
  free(queries);
}

static void test_nothing_to_ask_is_fine(void **state) {
  (void)state;
  struct hp_arena scratch = {0};
  hp_symbols_resolve(NULL, 0, NULL, &scratch);
  hp_arena_reset(&scratch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_name_comes_from_the_file_of_the_module, setup, teardown),
      cmocka_unit_test_setup_teardown(test_file_of_another_build_is_not_believed, setup, teardown),
      cmocka_unit_test_setup_teardown(test_answers_are_remembered_when_the_file_is_gone, setup, teardown),
      cmocka_unit_test_setup_teardown(test_forgotten_answers_are_looked_up_again, setup, teardown),
      cmocka_unit_test_setup_teardown(test_same_address_in_two_modules_has_two_answers, setup, teardown),
      cmocka_unit_test_setup_teardown(test_many_queries_of_many_modules_in_any_order, setup, teardown),
      cmocka_unit_test_setup_teardown(test_program_is_read_though_its_path_is_wrong, setup, teardown),
      cmocka_unit_test_setup_teardown(test_program_run_by_the_loader_is_found_by_its_path, setup, teardown),
      cmocka_unit_test_setup_teardown(test_without_a_build_id_the_headers_in_memory_decide, setup, teardown),
      cmocka_unit_test_setup_teardown(test_near_the_ceiling_no_new_name_is_looked_for, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_hundred_libraries_take_the_scratch_of_one, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_descriptor_left_is_not_remembered_as_unknown, setup, teardown),
      cmocka_unit_test_setup_teardown(test_file_without_symbols_is_not_read_again, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_memory_is_not_remembered_as_unknown, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_descriptor_is_left_open, setup, teardown),
      cmocka_unit_test_setup_teardown(test_vdso_is_read_from_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(test_names_survive_the_ceiling_for_this_dump, setup, teardown),
      cmocka_unit_test_setup_teardown(test_nothing_to_ask_is_fine, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
