/* SPDX-License-Identifier: MIT
 * test_unwind_fallback.c - the unwinder built as for a C library without _dl_find_object: objects come from object_list.h.
 * argv[1]: the directory with the plugins. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "fork_in_unload.h"
#include "modules.h"
#include "object_list.h"
#include "walk_compare.h"

enum { ROUNDS = 200 };

static const char *plugin_directory;

static void check_here(void) {
  walk_check();
  __asm__ volatile("");
}

static int compare_ints(const void *left, const void *right) {
  walk_check();
  return *(const int *)left - *(const int *)right;
}

static void test_stacks_are_whole_with_the_list(void **state) {
  (void)state;
  int numbers[] = {3, 1, 2};
  check_here();
  qsort(numbers, 3, sizeof(int), compare_ints);
  assert_int_equal(walk_differences, 0);
  assert_true(walk_comparisons > 2);
}

/* The loader's own answer for the same address. */
static void test_list_says_what_the_loader_says(void **state) {
  (void)state;
  struct hp_object object;
  struct dl_find_object expected;
  uintptr_t address = (uintptr_t)dlsym(RTLD_DEFAULT, "qsort");
  assert_true(hp_object_list_find(address, &object));
  assert_int_equal(_dl_find_object((void *)address, &expected), 0);
  assert_int_equal(object.map_start, (uintptr_t)expected.dlfo_map_start);
  assert_ptr_equal(object.eh_frame_hdr, expected.dlfo_eh_frame);
  assert_int_equal(object.load_bias, expected.dlfo_link_map->l_addr);
  assert_ptr_equal(object.dynamic, expected.dlfo_link_map->l_ld);
  assert_string_equal(object.name, expected.dlfo_link_map->l_name);
  assert_ptr_equal(object.link_map, expected.dlfo_link_map);
  assert_false(hp_object_list_find((uintptr_t)&object, &object));
}

typedef long (*plugin_function)(void (*function)(void));

static void test_libraries_come_and_go(void **state) {
  (void)state;
  unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
  for (int i = 0; i < ROUNDS; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/unwind_plugin_%s.so", plugin_directory, i % 2 ? "small" : "large");
    void *handle = dlopen(path, RTLD_NOW);
    assert_non_null(handle);
    plugin_function function = (plugin_function)(uintptr_t)dlsym(handle, "plugin_call");
    function(check_here);
    const struct hp_module *module = hp_modules_find((uintptr_t)function);
    assert_non_null(module);
    assert_non_null(strstr(module->path, i % 2 ? "small" : "large"));
    hp_unwind_before_unload();
    struct hp_object object;
    assert_false(hp_object_list_find((uintptr_t)function, &object));
    dlclose(handle);
    assert_true(hp_unwind_after_unload());
    assert_false(hp_object_list_find((uintptr_t)function, &object));
  }
  assert_int_equal(walk_differences, 0);
}

/* Two threads open and close libraries of their own, as fast as they can; objects that stay are found whole or, while the
 * loader or a closing thread is at work, not at all. */
static bool is_over;
static uint32_t closings;
static void *open_and_close(void *name) {
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/unwind_plugin_%s.so", plugin_directory, (const char *)name);
  while (!hp_load_relaxed(&is_over)) {
    void *handle = dlopen(path, RTLD_NOW);
    void *symbol = dlsym(handle, "plugin_call");
    struct hp_object object;
    if (hp_object_list_find((uintptr_t)symbol, &object) && strcmp(object.name, path) != 0) abort();
    hp_unwind_before_unload();
    dlclose(handle);
    hp_unwind_after_unload();
    hp_add_relaxed(&closings, 1);
  }
  return NULL;
}

static void test_readers_see_whole_entries_or_none(void **state) {
  (void)state;
  static char *const names[] = {"small", "large"};
  pthread_t threads[2];
  struct hp_object first, again;
  uintptr_t address = (uintptr_t)dlsym(RTLD_DEFAULT, "qsort");
  assert_true(hp_object_list_find(address, &first));
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, open_and_close, names[i]);
  while (hp_load_relaxed(&closings) < ROUNDS) {
    if (hp_object_list_find(address, &again) && memcmp(&first, &again, sizeof(first)) != 0) fail();
  }
  hp_store_relaxed(&is_over, true);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_true(hp_object_list_find(address, &again));
  assert_memory_equal(&first, &again, sizeof(first));
}

/* While one thread is between the two ends of a dlclose, another one's end must not take what it cannot see for gone. */
static void test_two_closings_at_a_time_leave_the_modules_alive(void **state) {
  (void)state;
  check_here();
  uint32_t epoch = hp_modules_epoch();
  hp_unwind_before_unload();
  hp_unwind_before_unload();
  assert_false(hp_unwind_after_unload());
  assert_false(hp_unwind_after_unload());
  assert_int_equal(hp_modules_epoch(), epoch);
  check_here();
  assert_int_equal(walk_differences, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stacks_are_whole_with_the_list),
      cmocka_unit_test(test_list_says_what_the_loader_says),
      cmocka_unit_test(test_libraries_come_and_go),
      cmocka_unit_test(test_readers_see_whole_entries_or_none),
      cmocka_unit_test(test_two_closings_at_a_time_leave_the_modules_alive),
      cmocka_unit_test(test_a_child_forked_during_an_unload_caches_again),
      cmocka_unit_test(test_a_child_forked_by_the_unloading_thread_ends_it),
  };
  plugin_directory = argc > 1 ? argv[1] : ".";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
