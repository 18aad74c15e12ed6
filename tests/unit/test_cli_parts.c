/* SPDX-License-Identifier: MIT
 * test_cli_parts.c - the small parts of the command: units, JSON, printable text, demangling, file names, JIT names, signals.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

#include "command.h"
#include "expression.h"
#include "id_map.h"
#include "index_table.h"
#include "jit_names.h"
#include "name_demangle.h"
#include "name_shorten.h"
#include "out_template.h"
#include "path_clean.h"
#include "signal_name.h"
#include "text_output.h"
#include "units.h"

static void test_values_get_the_unit_people_read(void **unused) {
  (void)unused;
  char text[HP_UNITS_MAX];
  assert_string_equal(hp_units_format(0, "bytes", text), "0B");
  assert_string_equal(hp_units_format(1023, "bytes", text), "1023B");
  assert_string_equal(hp_units_format(1024, "bytes", text), "1.00KiB");
  assert_string_equal(hp_units_format(1536, "bytes", text), "1.50KiB");
  assert_string_equal(hp_units_format(-5 * 1048576, "bytes", text), "-5.00MiB");
  assert_string_equal(hp_units_format(1048575, "bytes", text), "1.00MiB"); /* not 1024KiB */
  assert_string_equal(hp_units_format(123 << 20, "bytes", text), "123MiB");
  assert_string_equal(hp_units_format(9999, "count", text), "9999");
  assert_string_equal(hp_units_format(12345, "count", text), "12.3k");
  assert_string_equal(hp_units_format(1500000000, "nanoseconds", text), "1.50s");
  assert_string_equal(hp_units_format_real(0.5, "bytes", text), "0.50B");
  hp_units_format(INT64_MIN, "bytes", text);
  assert_string_equal(hp_units_format_duration((int64_t)3723 * 1000000000, text), "1h02m");
  assert_string_equal(hp_units_format_time(0, text), "unknown");
  assert_string_equal(hp_units_format_time((int64_t)1700000000 * 1000000000, text), "2023-11-14 22:13:20 UTC");
}

static char *collected;
static size_t collected_length;

static FILE *collect(void) { return open_memstream(&collected, &collected_length); }

static void expect_collected(FILE *file, const char *expected) {
  fclose(file);
  assert_string_equal(collected, expected);
  free(collected);
}

static void test_names_cannot_drive_the_terminal(void **unused) {
  (void)unused;
  FILE *file = collect();
  hp_text_print(file, "a\033[31m\xc3\xa9\xff\xc2\x9b\n\x7f");
  expect_collected(file, "a\\x1b[31m\xc3\xa9\\xff\\xc2\\x9b\\x0a\\x7f");
}

static void test_json_is_valid_whatever_the_strings_hold(void **unused) {
  (void)unused;
  FILE *file = collect();
  struct hp_json json;
  hp_json_begin(&json, file, false);
  hp_json_object(&json, NULL);
  hp_json_string(&json, "k\"", "a\\\n</script>\xff\xe2\x80\xa8");
  hp_json_array(&json, "list");
  hp_json_integer(&json, NULL, INT64_MIN);
  hp_json_real(&json, NULL, 1.0 / 0.0);
  hp_json_bool(&json, NULL, true);
  hp_json_end(&json, ']');
  hp_json_end(&json, '}');
  expect_collected(
      file, "{\"k\\\"\":\"a\\\\\\u000a\\u003c/script\\u003e\\ufffd\\u2028\",\"list\":[-9223372036854775808,null,true]}");
}

static void test_utf8_is_told_from_its_lookalikes(void **unused) {
  (void)unused;
  assert_int_equal(hp_utf8_length("\xe2\x82\xac"), 3);
  assert_int_equal(hp_utf8_length("\xf0\x9f\x98\x80"), 4);
  assert_int_equal(hp_utf8_length("\xc0\x80"), 0);         /* overlong */
  assert_int_equal(hp_utf8_length("\xed\xa0\x80"), 0);     /* surrogate */
  assert_int_equal(hp_utf8_length("\xf4\x90\x80\x80"), 0); /* beyond U+10FFFF */
  assert_int_equal(hp_utf8_length("\xe2\x82"), 0);         /* cut */
}

static void expect_demangled(const char *name, const char *expected) {
  char *got = hp_demangle(name);
  if (expected == NULL)
    assert_null(got);
  else
    assert_string_equal(got, expected);
  free(got);
}

static void test_cxx_and_rust_names_are_demangled(void **unused) {
  (void)unused;
  expect_demangled("_ZN3foo3barEi", "foo::bar(int)");
  expect_demangled("_ZN3foo3barEi.constprop.0", "foo::bar(int)");
  expect_demangled("_ZN3foo3barEi.part.1.cold", "foo::bar(int)");
  expect_demangled("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)");
  expect_demangled("_ZN5rusty5inner9in_module17h0123456789abcdefE", "rusty::inner::in_module");
  expect_demangled("_RNvNtCs1234_5rusty5inner9in_module", "rusty::inner::in_module");
  expect_demangled("_ZN49_$LT$krate..part..Foo$u20$as$u20$krate..Trait$GT$6method17h0123456789abcdefE",
                   "<krate::part::Foo as krate::Trait>::method");
  expect_demangled("_ZN42_$LT$krate..cold..Foo$u20$as$u20$k..Tr$GT$6method17h0123456789abcdefE.llvm.1234",
                   "<krate::cold::Foo as k::Tr>::method");
  expect_demangled("main", NULL);
  expect_demangled("_Z", NULL);
  expect_demangled("_R", NULL);
}

static void test_a_name_that_stands_for_gigabytes_is_left_alone(void **unused) {
  (void)unused;
  char name[512] = "_Z1fI"; /* each pair doubles: St4pairIS_S_E of what came before */
  strcat(name, "1a");
  const char *digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int i = 0; i < 30; i++) {
    char part[32], before[2] = {i > 0 ? digits[i - 1] : '\0', '\0'};
    sprintf(part, "1pIS%s_S%s_E", before, before);
    strcat(name, part);
  }
  strcat(name, "Evv");
  free(hp_demangle(name)); /* returns in bounded memory, with or without a name */
}

static void test_templates_become_absolute(void **unused) {
  (void)unused;
  static const char *const cases[][3] = {{NULL, "/a", "/a/heapprof.%e.%p.%n.pb.gz"},
                                         {"", "/", "/heapprof.%e.%p.%n.pb.gz"},
                                         {"x.pb.gz", "/a%b", "/a%%b/x.pb.gz"},
                                         {"/t/", "/a", "/t/heapprof.%e.%p.%n.pb.gz"},
                                         {"s/%p.gz", "/a", "/a/s/%p.gz"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *template = hp_out_template_absolute(cases[i][0], cases[i][1]);
    assert_string_equal(template, cases[i][2]);
    free(template);
  }
}

static void test_paths_become_as_short_as_they_can(void **unused) {
  (void)unused;
  static const char *const cases[][2] = {{"/a/./b//c", "/a/b/c"},
                                         {"./csu/../sysdeps/x.h", "sysdeps/x.h"},
                                         {"/../a", "/a"},
                                         {"../a/../b", "../b"},
                                         {"../../a", "../../a"},
                                         {"/a/b/../../c", "/c"},
                                         {"a", "a"},
                                         {"/", "/"},
                                         {"a/..", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char path[64];
    strcpy(path, cases[i][0]);
    hp_path_clean(path);
    assert_string_equal(path, cases[i][1]);
  }
}

static char folder[] = "/tmp/hp_test_XXXXXX";

static void touch(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fclose(file);
}

static size_t count_matches(const char *template, int64_t pid) {
  struct hp_out_list list = {0};
  char *absolute = hp_out_template_absolute(template, folder);
  hp_out_template_list("", absolute, pid, &list);
  size_t count = list.count;
  hp_out_list_free(&list);
  free(absolute);
  return count;
}

static void test_files_are_found_by_the_template_that_made_them(void **unused) {
  (void)unused;
  static const char *const names[] = {"heapprof.app.12.0.pb.gz",
                                      "heapprof.my.app.12.1.pb.gz",
                                      "heapprof.app.13.0.pb.gz",
                                      "heapprof.app.12.2.peak.pb.gz",
                                      "heapprof.app.12.x.pb.gz",
                                      "heapprof.app.12.3.pb.gz.XX",
                                      "dump%"};
  assert_non_null(mkdtemp(folder));
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) touch(names[i]);
  assert_int_equal(count_matches(NULL, 12), 3);
  assert_int_equal(count_matches(NULL, 0), 4);
  assert_int_equal(count_matches("heapprof.app.%p.0.pb.gz", 0), 2);
  assert_int_equal(count_matches("dump%%", 7), 1);
  assert_int_equal(count_matches("no/%p/%n", 0), 0);
  assert_int_equal(count_matches("%e%e%e%e%e%e%e%e%e%e%e%e%e%e%e%e%e%e%e!", 0), 0); /* returns */
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

static void test_signals_are_known_by_name_and_number(void **unused) {
  (void)unused;
  assert_int_equal(hp_signal_parse("USR2"), SIGUSR2);
  assert_int_equal(hp_signal_parse("SIGUSR1"), SIGUSR1);
  assert_int_equal(hp_signal_parse("RTMIN+3"), SIGRTMIN + 3);
  assert_int_equal(hp_signal_parse("12"), 12);
  assert_int_equal(hp_signal_parse("none"), 0);
  assert_int_equal(hp_signal_parse("bogus"), -1);
  assert_int_equal(hp_signal_parse("RTMIN+99"), -1);
  assert_int_equal(hp_signal_parse(""), -1);
  assert_int_equal(hp_signal_parse("-3"), -1);
}

static void test_sizes_take_binary_suffixes_and_nothing_else(void **unused) {
  (void)unused;
  uint64_t size;
  assert_int_equal(hp_parse_size("512k", &size), 0);
  assert_int_equal(size, 524288);
  assert_int_equal(hp_parse_size("1G", &size), 0);
  assert_int_equal(size, 1 << 30);
  static const char *const bad[] = {"", "k", "-1", "1kb", "1t", " 1", "99999999999999999999", "9999999999g"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_int_equal(hp_parse_size(bad[i], &size), -1);
}

static void write_file(const char *path, const void *bytes, size_t length) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fwrite(bytes, 1, length, file);
  fclose(file);
}

static void test_jit_names_come_from_perf_maps_and_jitdump(void **unused) {
  (void)unused;
  char path[] = "/tmp/hp_jit_XXXXXX";
  close(mkstemp(path));
  const char map[] =
      "1000 100 first function\nbad line\n2000 zz\n1080 10 newer code\nffffffffffffffff 10 wraps\n3000 0 empty\n4000 20 "
      "last";
  write_file(path, map, sizeof map - 1);
  struct hp_jit_names *names = hp_jit_names_new();
  const char *why;
  assert_true(hp_jit_names_add(names, path, &why));
  assert_string_equal(hp_jit_names_find(names, 0x1000), "first function");
  assert_string_equal(hp_jit_names_find(names, 0x1085), "newer code");
  assert_string_equal(hp_jit_names_find(names, 0x10ff), "first function");
  assert_null(hp_jit_names_find(names, 0x1100));
  assert_string_equal(hp_jit_names_find(names, 0x4001), "last");
  struct {
    uint32_t magic, version, size, machine, pad, pid;
    uint64_t time, flags;
    uint32_t id, record_size;
    uint64_t record_time;
    uint32_t load_pid, tid;
    uint64_t vma, address, code_size, index;
    char name[8];
  } dump = {0x4a695444, 1, 40, 62, 0, 1, 0, 0, 0, 64, 0, 1, 1, 0x9000, 0x9000, 16, 0, "jitted"};
  _Static_assert(sizeof dump == 104, "as on disk");
  write_file(path, &dump, sizeof dump);
  assert_true(hp_jit_names_add(names, path, &why));
  assert_string_equal(hp_jit_names_find(names, 0x900f), "jitted");
  dump.record_size = 0xffffffff;
  write_file(path, &dump, sizeof dump);
  assert_true(hp_jit_names_add(names, path, &why));
  assert_false(hp_jit_names_add(names, "/tmp", &why));
  assert_string_equal(why, "no regular file");
  unlink(path);
  assert_int_equal(symlink("/etc/passwd", path), 0);
  assert_false(hp_jit_names_add(names, path, &why));
  unlink(path);
  hp_jit_names_free(names);
}

static void test_ids_in_order_and_any_others_are_found_again(void **unused) {
  (void)unused;
  struct hp_id_map map = {0};
  assert_int_equal(hp_id_map_find(&map, 0), UINT32_MAX);
  assert_int_equal(hp_id_map_find(&map, 1), UINT32_MAX);
  const uint64_t ids[] = {1, 2, 7, 4, 3, UINT64_MAX, 0};
  for (uint32_t i = 0; i < 7; i++) assert_true(hp_id_map_add(&map, ids[i], i));
  assert_int_equal(map.in_order, 2);
  for (uint32_t i = 0; i < 7; i++) {
    assert_int_equal(hp_id_map_find(&map, ids[i]), i);
    assert_false(hp_id_map_add(&map, ids[i], 99));
  }
  assert_int_equal(hp_id_map_find(&map, 5), UINT32_MAX);
  assert_int_equal(hp_id_map_memory_bytes(&map) != 0, 1);
  hp_id_map_free(&map);
  for (uint32_t i = 0; i < 1000; i++) assert_true(hp_id_map_add(&map, i + 1, i));
  assert_int_equal(hp_id_map_memory_bytes(&map), 0);
  assert_int_equal(hp_id_map_find(&map, 1000), 999);
  assert_int_equal(hp_id_map_find(&map, 1001), UINT32_MAX);
  hp_id_map_free(&map);
}

static void expect_shortened(const char *name, size_t room, const char *expected) {
  char *shorter = hp_name_shorten(name, room);
  assert_string_equal(shorter != NULL ? shorter : name, expected);
  free(shorter);
}

static void test_template_names_lose_arguments_before_their_middle(void **unused) {
  (void)unused;
  const char *tree =
      "map<int, pair<int, string<char> >, less<int> >::insert<pair<int, string<char> > >(pair<int, string<char> >&&)";
  expect_shortened(tree, 0, tree);
  expect_shortened(tree, strlen(tree), tree);
  expect_shortened(tree, 90, "map<int, pair<...>, less<int> >::insert<pair<...> >(pair<int, string<...> >&&)");
  expect_shortened(tree, 60, "map<...>::insert<...>(pair<...>&&)");
  expect_shortened(tree, 30, "map<...>::insert<...>(...)");
  expect_shortened(tree, 20, "map<...>......>(...)");
}

static void test_signs_in_names_are_no_brackets(void **unused) {
  (void)unused;
  expect_shortened("ostream& operator<< <char_traits<char> >(ostream&, char const*)", 40, "ostream& operator<< <...>(...)");
  expect_shortened("Pointer<Element, Deleter>::operator->() const", 40, "Pointer<...>::operator->() const");
  expect_shortened("bool Key<int, long>::operator<(Key<int, long> const&)", 41, "bool Key<...>::operator<(Key<...> const&)");
  expect_shortened("(anonymous namespace)::work(int, int, int, int)", 40, "(anonymous namespace)::work(...)");
  expect_shortened("<alloc::vec::Vec<T,A> as Drop>::drop::<u8, u16>", 44, "<alloc::vec::Vec<T,A> as Drop>::drop::<...>");
  expect_shortened("call<fn(usize) -> bool, (1 > 2), x>(a, b)", 20, "call<...>(a, b)");
  expect_shortened("A<(4>3)>::f(int)", 14, "A<...>::f(int)");
}

static void test_names_that_do_not_pair_up_lose_their_middle(void **unused) {
  (void)unused;
  expect_shortened("one<two<three::four::five", 13, "one<t...:five");
  expect_shortened("one>two)three::four::five", 13, "one>t...:five");
  expect_shortened("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5, "\xc3\xa9...\xc3\xa9");
  expect_shortened("abcdefgh", 3, "...");
  char deep[2 * 70 + 2] = "f";
  memset(deep + 1, '(', 70);
  memset(deep + 71, ')', 70);
  expect_shortened(deep, 11, "f(((...))))");
}

static void test_a_narrow_terminal_gives_a_name_a_second_line(void **unused) {
  (void)unused;
  assert_int_equal(hp_name_room(0, 64), 0);
  assert_int_equal(hp_name_room(80, 64), 96);
  assert_int_equal(hp_name_room(200, 64), 136);
  assert_int_equal(hp_name_room(1, 64), 48);
  FILE *file = collect();
  assert_int_equal(hp_terminal_width(file), 0);
  expect_collected(file, "");
}

static void expect_expression(const char *text, const char *why) {
  regex_t expression;
  struct hp_error error;
  int result = hp_expression_compile(&expression, "--focus", text, &error);
  if (result == 0) regfree(&expression);
  if (why == NULL && result != 0) fail_msg("%s: %s", text, error.text);
  if (why == NULL) return;
  assert_int_equal(result, -1);
  if (strstr(error.text, why) == NULL) fail_msg("%s: \"%s\" does not say \"%s\"", text, error.text, why);
}

static void test_expressions_are_bounded_before_they_are_compiled(void **unused) {
  (void)unused;
  static const char *const fine[] = {
      "std::(vector|map)<.*>",
      "a{2048}",
      "(ab){1,600}",
      "[]a({]{2000}",
      "[^]{2}]",
      "[[:alnum:]_{]{3}",
      "\\{2\\}{2000}",
      "((a{10}){10}){10}",
      "^[[=a=](){3}$]x",
      "[\\1]",
      "\\\\1",
      "x{0}",
      "(a|b|c){3,200}",
      "",
  };
  for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) expect_expression(fine[i], NULL);
  expect_expression("a{2049}", "written out");
  expect_expression("(ab){1,700}", "written out");
  expect_expression("((a{1,255}){1,255}){1,255}", "written out");
  expect_expression("((){1,255}){1,255}", "written out");
  expect_expression("[]a]{3000}", "written out");
  expect_expression("[[:alpha:]]{30}{30}{30}", "written out");
  expect_expression("\\({3000}", "written out");
  expect_expression("(a*)*\\1", "back references");
  expect_expression("(", "--focus");
  expect_expression("[[:alpha", "--focus");
  expect_expression("a{", "--focus");
  static char longest[2050];
  memset(longest, 'a', 2049);
  expect_expression(longest, "longer");
  longest[2048] = '\0';
  expect_expression(longest, NULL);
}

static bool is_number(const void *numbers, uint32_t index, const void *key) {
  return ((const uint64_t *)numbers)[index] == *(const uint64_t *)key;
}

/* As their callers do: append what was not there. */
static void test_an_index_table_says_which_entry_equals_the_key(void **unused) {
  (void)unused;
  enum { NUMBERS = 5000, OF_ONE_HASH = 40 };
  static uint64_t numbers[NUMBERS];
  struct hp_index_table table = {0};
  size_t count = 0;
  for (int round = 0; round < 2; round++) {
    for (uint64_t n = 0; n < NUMBERS; n++) {
      uint64_t hash = n < OF_ONE_HASH ? 7 : n * 0x9E3779B97F4A7C15u;
      uint32_t at = hp_index_table_find_or_add(&table, hash, is_number, numbers, &n, count);
      assert_int_equal(at, n);
      if (at == count) numbers[count++] = n;
    }
    assert_int_equal(count, NUMBERS);
    assert_true(table.used * 2 <= table.slot_count);
  }
  hp_index_table_reserve(&table, 100000);
  uint64_t last = NUMBERS - 1;
  assert_int_equal(hp_index_table_find_or_add(&table, last * 0x9E3779B97F4A7C15u, is_number, numbers, &last, count), last);
  hp_index_table_free(&table);
  assert_int_equal(table.used, 0);
}

static void test_a_base_name_follows_the_last_slash(void **unused) {
  (void)unused;
  assert_string_equal(hp_path_base_name("/usr/lib/libc.so.6"), "libc.so.6");
  assert_string_equal(hp_path_base_name("libc.so.6"), "libc.so.6");
  assert_string_equal(hp_path_base_name("folder/"), "folder/");
  assert_string_equal(hp_path_base_name(""), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values_get_the_unit_people_read),
      cmocka_unit_test(test_names_cannot_drive_the_terminal),
      cmocka_unit_test(test_json_is_valid_whatever_the_strings_hold),
      cmocka_unit_test(test_utf8_is_told_from_its_lookalikes),
      cmocka_unit_test(test_cxx_and_rust_names_are_demangled),
      cmocka_unit_test(test_a_name_that_stands_for_gigabytes_is_left_alone),
      cmocka_unit_test(test_templates_become_absolute),
      cmocka_unit_test(test_paths_become_as_short_as_they_can),
      cmocka_unit_test(test_files_are_found_by_the_template_that_made_them),
      cmocka_unit_test(test_signals_are_known_by_name_and_number),
      cmocka_unit_test(test_sizes_take_binary_suffixes_and_nothing_else),
      cmocka_unit_test(test_jit_names_come_from_perf_maps_and_jitdump),
      cmocka_unit_test(test_template_names_lose_arguments_before_their_middle),
      cmocka_unit_test(test_signs_in_names_are_no_brackets),
      cmocka_unit_test(test_names_that_do_not_pair_up_lose_their_middle),
      cmocka_unit_test(test_a_narrow_terminal_gives_a_name_a_second_line),
      cmocka_unit_test(test_expressions_are_bounded_before_they_are_compiled),
      cmocka_unit_test(test_ids_in_order_and_any_others_are_found_again),
      cmocka_unit_test(test_an_index_table_says_which_entry_equals_the_key),
      cmocka_unit_test(test_a_base_name_follows_the_last_slash),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
