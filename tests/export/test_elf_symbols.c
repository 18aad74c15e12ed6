/* SPDX-License-Identifier: MIT
 * test_elf_symbols.c - which symbol answers for an address, and ELF files that lie. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_fixture.h"
#include "elf_symbols.h"
#include "export_test.h"
#include "rng.h"

static char path[64];

static int setup(void **state) {
  (void)state;
  elf_fixture_path(path);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  return unlink(path);
}

/* The name at each of n sorted addresses, or "" for none; false: the file has no symbols or is no ELF file. */
static bool names_at(const char *file, const uint64_t *addresses, size_t n, char (*out)[64]) {
  struct hp_arena arena = {0};
  struct hp_elf elf;
  struct hp_elf_names names = {0};
  if (hp_elf_open(&elf, file) != 0) return false;
  bool is_open = hp_elf_names_open(&names, &elf, &arena) == 0;
  if (is_open) {
    struct hp_elf_target *targets = calloc(n, sizeof *targets);
    for (size_t i = 0; i < n; i++) targets[i].address = addresses[i];
    hp_elf_names_match(&names, targets, n);
    for (size_t i = 0; i < n; i++) {
      uint64_t key;
      size_t length = hp_elf_names_read(&names, &targets[i], UINT64_MAX, 0, &key);
      assert_true(length <= HP_SYMBOL_NAME_MAX);
      snprintf(out[i], sizeof out[i], "%.*s", (int)length, length == 0 ? "" : names.name);
    }
    free(targets);
  }
  hp_elf_close(&elf);
  hp_arena_reset(&arena);
  return is_open;
}

static void expect_name(const struct fixture_symbol *symbols, size_t n, uint64_t address, const char *want) {
  for (int reversed = 0; reversed < 2; reversed++) { /* the order of the table must not matter */
    struct fixture_symbol *copy = calloc(n, sizeof *copy);
    for (size_t i = 0; i < n; i++) copy[i] = symbols[reversed ? n - 1 - i : i];
    struct elf_fixture fixture = elf_fixture_make(copy, n, NULL, 0);
    elf_fixture_write(&fixture, path, fixture.size);
    char name[1][64];
    assert_true(names_at(path, &address, 1, name));
    assert_string_equal(name[0], want);
    elf_fixture_free(&fixture);
    free(copy);
  }
}

#define FUNCTION(name_, value_, size_) \
  { .name = name_, .value = value_, .size = size_, .type = STT_FUNC, .binding = STB_GLOBAL, .section = FIXTURE_TEXT }
#define LOCAL(name_, value_, size_) \
  { .name = name_, .value = value_, .size = size_, .type = STT_FUNC, .binding = STB_LOCAL, .section = FIXTURE_TEXT }

static void test_address_belongs_to_the_symbol_that_covers_it(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("first", 0x1000, 0x10), FUNCTION("second", 0x1010, 0x20)};
  expect_name(symbols, 2, 0x1000, "first");
  expect_name(symbols, 2, 0x100F, "first");
  expect_name(symbols, 2, 0x1010, "second");
  expect_name(symbols, 2, 0x102F, "second");
  expect_name(symbols, 2, 0x1030, ""); /* behind the last */
  expect_name(symbols, 2, 0xFFF, "");
}

static void test_gap_between_sized_symbols_is_nobody_s(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("first", 0x1000, 0x10), FUNCTION("second", 0x1100, 0x10)};
  expect_name(symbols, 2, 0x1050, "");
}

static void test_innermost_of_nested_symbols_answers(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("outer", 0x1000, 0x100), FUNCTION("inner", 0x1040, 0x10)};
  expect_name(symbols, 2, 0x1045, "inner");
  expect_name(symbols, 2, 0x1055, "outer");
}

static void test_symbol_without_a_size_reaches_to_the_next_function_or_the_section_s_end(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("bare", 0x1100, 0), FUNCTION("sized", 0x1200, 0x10)};
  expect_name(symbols, 2, 0x1100, "bare");
  expect_name(symbols, 2, 0x11FF, "bare");
  expect_name(symbols, 2, 0x1205, "sized");
  expect_name(symbols, 2, 0x1210, ""); /* a sized function lies between */
  const struct fixture_symbol last[] = {FUNCTION("bare", 0x1F00, 0)};
  expect_name(last, 1, 0x1FFF, "bare");
  expect_name(last, 1, 0x2000, "");
  const struct fixture_symbol absolute[] = {
      {.name = "absolute", .value = 0x1100, .type = STT_FUNC, .binding = STB_GLOBAL, .section = SHN_ABS}};
  expect_name(absolute, 1, 0x1100, "");
}

static void test_sized_symbol_hides_one_without_a_size_at_its_place(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("bare", 0x1100, 0), FUNCTION("sized", 0x1100, 0x10)};
  expect_name(symbols, 2, 0x1105, "sized");
  expect_name(symbols, 2, 0x1110, "");
}

static void test_best_of_several_symbols_without_a_size_answers(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("__start", 0x1100, 0), FUNCTION("start", 0x1100, 0),
                                           LOCAL("s", 0x1100, 0)};
  expect_name(symbols, 3, 0x1180, "start");
}

static void test_many_targets_below_one_bare_symbol(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("a", 0x1000, 0), FUNCTION("b", 0x1008, 4), FUNCTION("c", 0x1010, 0)};
  struct elf_fixture fixture = elf_fixture_make(symbols, 3, NULL, 0);
  elf_fixture_write(&fixture, path, fixture.size);
  const uint64_t addresses[] = {0x900, 0x1000, 0x1001, 0x1007, 0x1008, 0x100C, 0x1010, 0x1800, 0x1801};
  const char *const want[] = {"", "a", "a", "a", "b", "", "c", "c", "c"};
  char names[9][64];
  assert_true(names_at(path, addresses, 9, names));
  for (size_t i = 0; i < 9; i++) assert_string_equal(names[i], want[i]);
  elf_fixture_free(&fixture);
}

static void test_global_or_weak_is_preferred_to_local(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {LOCAL("a", 0x1000, 8), FUNCTION("__zzz_global", 0x1000, 8)};
  expect_name(symbols, 2, 0x1004, "__zzz_global");
  const struct fixture_symbol weak[] = {
      LOCAL("a", 0x1000, 8),
      {.name = "weak", .value = 0x1000, .size = 8, .type = STT_FUNC, .binding = STB_WEAK, .section = FIXTURE_TEXT}};
  expect_name(weak, 2, 0x1004, "weak");
}

static void test_name_with_fewer_underscores_then_shorter_then_smaller_is_preferred(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("__libc_malloc", 0x1000, 8), FUNCTION("malloc", 0x1000, 8),
                                           FUNCTION("_m", 0x1000, 8)};
  expect_name(symbols, 3, 0x1004, "malloc");
  const struct fixture_symbol lengths[] = {FUNCTION("memalign", 0x1000, 8), FUNCTION("aligned_alloc", 0x1000, 8)};
  expect_name(lengths, 2, 0x1004, "memalign");
  const struct fixture_symbol constructors[] = {FUNCTION("_ZN1AC2Ev", 0x1000, 8), FUNCTION("_ZN1AC1Ev", 0x1000, 8)};
  expect_name(constructors, 2, 0x1004, "_ZN1AC1Ev");
}

static void test_versions_are_cut_off(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {FUNCTION("memcpy@@GLIBC_2.14", 0x1000, 8), FUNCTION("@odd", 0x1010, 8)};
  expect_name(symbols, 2, 0x1004, "memcpy");
  expect_name(symbols, 2, 0x1014, "@odd");
}

static void test_only_defined_functions_count(void **state) {
  (void)state;
  const struct fixture_symbol symbols[] = {
      {.name = "object", .value = 0x1000, .size = 8, .type = STT_OBJECT, .binding = STB_GLOBAL, .section = FIXTURE_TEXT},
      {.name = "plain", .value = 0x1000, .size = 8, .type = STT_NOTYPE, .binding = STB_GLOBAL, .section = FIXTURE_TEXT},
      {.name = "import", .value = 0x1000, .size = 8, .type = STT_FUNC, .binding = STB_GLOBAL, .section = SHN_UNDEF},
      {.name = "chosen_at_run_time",
       .value = 0x1100,
       .size = 8,
       .type = STT_GNU_IFUNC,
       .binding = STB_GLOBAL,
       .section = FIXTURE_TEXT}};
  expect_name(symbols, 4, 0x1004, "");
  expect_name(symbols, 4, 0x1104, "chosen_at_run_time");
}

static void test_long_names_are_cut(void **state) {
  (void)state;
  static char name[3 * HP_SYMBOL_NAME_MAX];
  memset(name, 'n', sizeof name - 1);
  const struct fixture_symbol symbols[] = {FUNCTION(name, 0x1000, 8)};
  struct elf_fixture fixture = elf_fixture_make(symbols, 1, NULL, 0);
  elf_fixture_write(&fixture, path, fixture.size);
  struct hp_arena arena = {0};
  struct hp_elf elf;
  struct hp_elf_names names = {0};
  struct hp_elf_target target = {.address = 0x1001};
  uint64_t key;
  assert_int_equal(hp_elf_open(&elf, path), 0);
  assert_int_equal(hp_elf_names_open(&names, &elf, &arena), 0);
  hp_elf_names_match(&names, &target, 1);
  assert_int_equal(hp_elf_names_read(&names, &target, UINT64_MAX, 0, &key), HP_SYMBOL_NAME_MAX);
  assert_int_equal(strlen(names.name), HP_SYMBOL_NAME_MAX);
  hp_elf_close(&elf);
  hp_arena_reset(&arena);
  elf_fixture_free(&fixture);
}

static const struct fixture_symbol FULL[] = {FUNCTION("from_symtab", 0x1000, 8)};
static const struct fixture_symbol DYNAMIC[] = {FUNCTION("from_dynsym", 0x1000, 8)};

static void expect_fixture_name(struct elf_fixture *fixture, const char *want) {
  const uint64_t address = 0x1004;
  char name[1][64] = {""};
  elf_fixture_write(fixture, path, fixture->size);
  bool is_open = names_at(path, &address, 1, name);
  assert_int_equal(is_open, want[0] != 0);
  assert_string_equal(name[0], want);
}

static void test_dynsym_answers_only_without_a_usable_symtab(void **state) {
  (void)state;
  struct elf_fixture fixture = elf_fixture_make(FULL, 1, DYNAMIC, 1);
  expect_fixture_name(&fixture, "from_symtab");
  Elf64_Shdr *symtab = elf_fixture_section(&fixture, FIXTURE_SYMTAB);
  const Elf64_Shdr good = *symtab;
  symtab->sh_link = FIXTURE_SECTIONS;
  expect_fixture_name(&fixture, "from_dynsym");
  *symtab = good;
  symtab->sh_link = FIXTURE_TEXT;
  expect_fixture_name(&fixture, "from_dynsym");
  *symtab = good;
  symtab->sh_entsize = 23;
  expect_fixture_name(&fixture, "from_dynsym");
  *symtab = good;
  symtab->sh_offset = UINT64_MAX - 8;
  expect_fixture_name(&fixture, "from_dynsym");
  *symtab = good;
  symtab->sh_size = UINT64_MAX;
  expect_fixture_name(&fixture, "from_dynsym");
  symtab->sh_type = SHT_NULL;
  expect_fixture_name(&fixture, "from_dynsym");
  elf_fixture_section(&fixture, FIXTURE_DYNSYM)->sh_type = SHT_NULL;
  expect_fixture_name(&fixture, "");
  elf_fixture_free(&fixture);
}

static void test_more_sections_than_the_header_can_count(void **state) {
  (void)state;
  struct elf_fixture fixture = elf_fixture_make(FULL, 1, NULL, 0);
  elf_fixture_header(&fixture)->e_shnum = 0;
  elf_fixture_section(&fixture, 0)->sh_size = FIXTURE_SECTIONS;
  expect_fixture_name(&fixture, "from_symtab");
  elf_fixture_free(&fixture);
}

static void test_headers_that_are_not_ours_are_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < 6; i++) { /* magic, class, byte order */
    struct elf_fixture fixture = elf_fixture_make(FULL, 1, NULL, 0);
    struct hp_elf elf;
    fixture.bytes[i] ^= 3;
    elf_fixture_write(&fixture, path, fixture.size);
    assert_int_equal(hp_elf_open(&elf, path), -ENOEXEC);
    elf_fixture_free(&fixture);
  }
  struct hp_elf elf;
  assert_int_equal(hp_elf_open(&elf, "/etc/passwd"), -ENOEXEC);
  assert_int_equal(hp_elf_open(&elf, "/tmp"), -ENOEXEC);
  assert_int_equal(hp_elf_open(&elf, "/dev/zero"), -ENOEXEC);
  assert_int_equal(hp_elf_open(&elf, "/nowhere"), -ENOENT);
}

static void test_pipe_is_refused_without_waiting(void **state) {
  (void)state;
  struct hp_elf elf;
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(hp_elf_open(&elf, path), -ENOEXEC);
}

static void test_build_id_is_found_and_bounded(void **state) {
  (void)state;
  struct elf_fixture fixture = elf_fixture_make(FULL, 1, NULL, 0);
  struct hp_elf elf;
  uint8_t id[8];
  elf_fixture_write(&fixture, path, fixture.size);
  assert_int_equal(hp_elf_open(&elf, path), 0);
  assert_int_equal(hp_elf_build_id(&elf, id, sizeof id), 8);
  assert_memory_equal(id, FIXTURE_BUILD_ID, 8);
  assert_int_equal(hp_elf_build_id(&elf, id, 7), 0); /* does not fit */
  hp_elf_close(&elf);
  elf_fixture_free(&fixture);
}

/* Whatever happens, it happens inside the file. */
static void use_everything(const struct elf_fixture *fixture, size_t n) {
  char names[3][64];
  const uint64_t addresses[] = {0x1000, 0x1004, 0x1800};
  struct hp_elf elf;
  uint8_t id[64];
  elf_fixture_write(fixture, path, n);
  if (hp_elf_open(&elf, path) == 0) {
    hp_elf_build_id(&elf, id, sizeof id);
    hp_elf_close(&elf);
  }
  names_at(path, addresses, 3, names);
  uint8_t *copy = malloc(n + 1); /* in memory: a sanitizer sees the end */
  memcpy(copy, fixture->bytes, n);
  if (hp_elf_open_memory(&elf, copy, n) == 0) {
    struct hp_elf_symbol_table table;
    hp_elf_build_id(&elf, id, sizeof id);
    hp_elf_find_symbols(&elf, &table);
  }
  free(copy);
}

static void test_every_cut_of_a_file_is_survived(void **state) {
  (void)state;
  struct elf_fixture fixture = elf_fixture_make(FULL, 1, DYNAMIC, 1);
  for (size_t n = 0; n <= fixture.size; n++) use_everything(&fixture, n);
  elf_fixture_free(&fixture);
}

static void test_corrupted_files_are_survived(void **state) {
  (void)state;
  struct hp_rng rng = {.state = 11};
  for (int round = 0; round < 5000; round++) {
    struct elf_fixture fixture = elf_fixture_make(FULL, 1, DYNAMIC, 1);
    for (uint64_t k = hp_rng_next(&rng) % 8; k < 8; k++) {
      fixture.bytes[hp_rng_next(&rng) % fixture.size] = (uint8_t)hp_rng_next(&rng);
    }
    use_everything(&fixture, fixture.size);
    elf_fixture_free(&fixture);
  }
}

static struct elf_fixture read_own_file(void) {
  struct elf_fixture fixture = {0};
  FILE *in = fopen("/proc/self/exe", "rb");
  assert_non_null(in);
  fseek(in, 0, SEEK_END);
  fixture.size = (size_t)ftell(in);
  rewind(in);
  fixture.bytes = malloc(fixture.size);
  assert_int_equal(fread(fixture.bytes, 1, fixture.size, in), fixture.size);
  fclose(in);
  return fixture;
}

static void test_real_file_cut_and_corrupted_is_survived(void **state) {
  (void)state;
  struct elf_fixture fixture = read_own_file();
  struct hp_rng rng = {.state = 13};
  for (int round = 0; round < 40; round++) use_everything(&fixture, hp_rng_next(&rng) % fixture.size);
  for (int round = 0; round < 60; round++) { /* damage adds up; half of it where the section headers are */
    uint64_t headers = elf_fixture_header(&fixture)->e_shoff;
    size_t at = hp_rng_next(&rng) % fixture.size;
    if (round % 2 == 0 && headers < fixture.size) at = headers + hp_rng_next(&rng) % (fixture.size - headers);
    fixture.bytes[at] = (uint8_t)hp_rng_next(&rng);
    use_everything(&fixture, fixture.size);
  }
  elf_fixture_free(&fixture);
}

static void test_real_file_names_its_functions(void **state) {
  (void)state;
  struct hp_elf elf;
  uint64_t address = (uint64_t)&test_real_file_names_its_functions;
  char name[1][64];
  assert_int_equal(hp_elf_open(&elf, "/proc/self/exe"), 0);
  extern const char __ehdr_start; /* the linker's: where the file lies in memory */
  if (elf.header.e_type == ET_DYN) address -= (uint64_t)&__ehdr_start;
  hp_elf_close(&elf);
  assert_true(names_at("/proc/self/exe", &address, 1, name));
  assert_string_equal(name[0], "test_real_file_names_its_functions");
}

static void test_table_that_overlaps_itself_without_end_is_given_up(void **state) {
  (void)state;
  enum { SYMBOLS = 20000, TARGETS = 20000 }; /* 4e8 pairs */
  struct fixture_symbol *symbols = calloc(SYMBOLS, sizeof *symbols);
  for (size_t i = 0; i < SYMBOLS; i++) symbols[i] = (struct fixture_symbol)FUNCTION("f", 0x1000 + i % 2, UINT64_MAX);
  struct elf_fixture fixture = elf_fixture_make(symbols, SYMBOLS, NULL, 0);
  elf_fixture_write(&fixture, path, fixture.size);
  struct hp_arena arena = {0};
  struct hp_elf elf;
  struct hp_elf_names resolver = {0};
  struct hp_elf_target *targets = calloc(TARGETS, sizeof *targets);
  for (size_t i = 0; i < TARGETS; i++) targets[i].address = 0x2000 + i;
  assert_int_equal(hp_elf_open(&elf, path), 0);
  assert_int_equal(hp_elf_names_open(&resolver, &elf, &arena), 0);
  hp_elf_names_match(&resolver, targets, TARGETS);
  assert_true(resolver.budget < 256);
  hp_elf_close(&elf);
  hp_arena_reset(&arena);
  elf_fixture_free(&fixture);
  free(targets);
  free(symbols);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_address_belongs_to_the_symbol_that_covers_it, setup, teardown),
      cmocka_unit_test_setup_teardown(test_gap_between_sized_symbols_is_nobody_s, setup, teardown),
      cmocka_unit_test_setup_teardown(test_innermost_of_nested_symbols_answers, setup, teardown),
      cmocka_unit_test_setup_teardown(test_symbol_without_a_size_reaches_to_the_next_function_or_the_section_s_end, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_sized_symbol_hides_one_without_a_size_at_its_place, setup, teardown),
      cmocka_unit_test_setup_teardown(test_best_of_several_symbols_without_a_size_answers, setup, teardown),
      cmocka_unit_test_setup_teardown(test_many_targets_below_one_bare_symbol, setup, teardown),
      cmocka_unit_test_setup_teardown(test_global_or_weak_is_preferred_to_local, setup, teardown),
      cmocka_unit_test_setup_teardown(test_name_with_fewer_underscores_then_shorter_then_smaller_is_preferred, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_versions_are_cut_off, setup, teardown),
      cmocka_unit_test_setup_teardown(test_only_defined_functions_count, setup, teardown),
      cmocka_unit_test_setup_teardown(test_long_names_are_cut, setup, teardown),
      cmocka_unit_test_setup_teardown(test_dynsym_answers_only_without_a_usable_symtab, setup, teardown),
      cmocka_unit_test_setup_teardown(test_more_sections_than_the_header_can_count, setup, teardown),
      cmocka_unit_test_setup_teardown(test_headers_that_are_not_ours_are_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(test_pipe_is_refused_without_waiting, setup, teardown),
      cmocka_unit_test_setup_teardown(test_build_id_is_found_and_bounded, setup, teardown),
      cmocka_unit_test_setup_teardown(test_every_cut_of_a_file_is_survived, setup, teardown),
      cmocka_unit_test_setup_teardown(test_corrupted_files_are_survived, setup, teardown),
      cmocka_unit_test_setup_teardown(test_real_file_cut_and_corrupted_is_survived, setup, teardown),
      cmocka_unit_test_setup_teardown(test_real_file_names_its_functions, setup, teardown),
      cmocka_unit_test_setup_teardown(test_table_that_overlaps_itself_without_end_is_given_up, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
