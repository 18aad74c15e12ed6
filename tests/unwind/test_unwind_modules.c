/* SPDX-License-Identifier: MIT
 * test_unwind_modules.c - libraries that come and go: rules and modules of one that was unloaded are not those of the one at
 * its place; nobody waits for the loader, whoever holds its lock; and what is remembered of a module is right.
 * argv[1]: the directory with the plugins. */
#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "fork_in_unload.h"
#include "modules.h"
#include "walk_compare.h"

enum { ROUNDS = 300, STORM_ROUNDS = 400 };

typedef long (*plugin_function)(void (*function)(void));

static const char *plugin_directory;
extern void (*plugin_constructor_hook)(void);
void (*plugin_constructor_hook)(void);

static struct walk_pair pair;
static void walk_here(void) {
  walk_both(&pair);
  __asm__ volatile("");
}
static void check_here(void) {
  walk_check();
  __asm__ volatile("");
}

static void *open_plugin(const char *name, plugin_function *out) {
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/%s.so", plugin_directory, name);
  void *handle = dlopen(path, RTLD_NOW);
  assert_non_null(handle);
  *out = (plugin_function)(uintptr_t)dlsym(handle, "plugin_call");
  assert_non_null(*out);
  return handle;
}

static bool close_plugin(void *handle) {
  hp_unwind_before_unload();
  dlclose(handle);
  return hp_unwind_after_unload();
}

/* qemu-user gives no address twice, so what takes turns at one place cannot be seen there. */
static void skip_if_no_address_comes_again(void) {
#if defined(__aarch64__)
  enum { SIZE = 1 << 20 };
  void *first = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(first, SIZE);
  void *second = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(second, SIZE);
  if (first != second) skip();
#endif
}

static void test_library_at_reused_addresses_has_its_own_rules(void **state) {
  (void)state;
  skip_if_no_address_comes_again();
  const char *names[] = {"unwind_plugin_small", "unwind_plugin_large"};
  uintptr_t last = 0;
  int reused = 0;
  for (int i = 0; i < ROUNDS; i++) {
    plugin_function function;
    void *handle = open_plugin(names[i % 2], &function);
    reused += (uintptr_t)function == last;
    last = (uintptr_t)function;
    function(walk_here);
    unw_flush_cache(unw_local_addr_space, 0, 0);
    function(check_here);
    assert_int_equal(walk_differences, 0);
    const struct hp_module *module = hp_modules_find(last);
    assert_non_null(module);
    assert_non_null(strstr(module->path, names[i % 2]));
    assert_false(module->is_gone);
    assert_true(close_plugin(handle));
    assert_true(module->is_gone);
    assert_null(hp_modules_find(last));
  }
  assert_true(reused > ROUNDS / 2); /* else this test shows nothing */
  uint32_t count = 0;
  for (const struct hp_module *module = hp_modules_first(); module != NULL; module = module->next) count++;
  assert_true(count < 40); /* a library that comes back is the same module */
}

/* ---- whose stacks they are ---- */

enum { WATCHED = 2 };
static struct {
  uintptr_t pcs[2];
  uint32_t set; /* 0: never closed */
  const struct hp_module *module;
  bool is_open;
} watched[WATCHED];
static int leavings, returnings;

static void ignore_module(const struct hp_module *module) { (void)module; }

static void note_leaving(const struct hp_module *module) {
  leavings++;
  assert_false(module->is_gone);
  assert_int_equal(hp_modules_sequence() % 2, 1);
  for (int i = 0; i < WATCHED; i++) {
    if (watched[i].module != module) continue;
    assert_true(watched[i].is_open);
    uint32_t set = hp_modules_set_of_locked(watched[i].pcs, 2);
    assert_true(watched[i].set == 0 || watched[i].set == set); /* the same modules are the same set */
    watched[i].set = set;
    watched[i].is_open = false;
  }
}

static void note_returning(const struct hp_module *module) {
  returnings++;
  assert_true(module->is_gone);
  hp_modules_set_returning_locked(module);
  for (int i = 0; i < WATCHED; i++) {
    if (watched[i].set == 0) continue;
    bool is_back = hp_modules_are_back_locked(watched[i].set, watched[i].pcs, 2);
    assert_int_equal(is_back, watched[i].module == module);
    watched[i].is_open = is_back;
  }
  hp_modules_set_returning_locked(NULL);
}

/* Two libraries take turns at one place: to each its own set, for ever the same. */
static void test_stacks_belong_to_the_library_they_were_taken_in(void **state) {
  (void)state;
  static const struct hp_modules_watcher watcher = {.leaving = note_leaving, .returning = note_returning};
  static const struct hp_modules_watcher nobody = {.leaving = ignore_module, .returning = ignore_module};
  const char *names[] = {"unwind_plugin_small", "unwind_plugin_large"};
  skip_if_no_address_comes_again();
  hp_modules_watch(&watcher);
  for (int i = 0; i < ROUNDS; i++) {
    int which = i % 3 % 2; /* small, large, small, small, ... */
    plugin_function function;
    void *handle = open_plugin(names[which], &function);
    function(walk_here);
    uintptr_t address = (uintptr_t)function;
    if (watched[which].module == NULL) {
      watched[which].module = hp_modules_find(address);
      watched[which].pcs[0] = address + 1;
      watched[which].pcs[1] = (uintptr_t)&walk_here + 1;
      watched[which].is_open = true;
    }
    if (watched[which].pcs[0] == address + 1) assert_true(watched[which].is_open);
    assert_true(close_plugin(handle));
  }
  hp_modules_watch(&nobody);
  assert_true(leavings >= ROUNDS);
  assert_true(returnings > ROUNDS / 2);
  assert_int_not_equal(watched[0].set, 0);
  assert_int_not_equal(watched[0].set, watched[1].set);
  for (int i = 0; i < WATCHED; i++) {
    const struct hp_module_set *set = hp_module_set_get(watched[i].set);
    assert_int_equal(set->count, 2); /* the library and this program */
    assert_ptr_equal(hp_module_set_find(set, watched[i].pcs[0]), watched[i].module);
    assert_true(hp_module_set_find(set, watched[i].pcs[1])->is_executable);
    assert_null(hp_module_set_find(set, (uintptr_t)&set));
  }
}

static void copy_file(const char *from, const char *to) {
  char buffer[65536];
  size_t n;
  unlink(to);
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  assert_non_null(in);
  assert_non_null(out);
  while ((n = fread(buffer, 1, sizeof buffer, in)) > 0) assert_int_equal(fwrite(buffer, 1, n, out), n);
  fclose(in);
  fclose(out);
}

/* Two builds without a build id take turns at one path and place: each is itself again from its second life on. */
static void test_builds_without_an_id_are_told_apart_by_their_tables(void **state) {
  (void)state;
  enum { TURNS = 40 };
  skip_if_no_address_comes_again();
  const char *names[] = {"unwind_plugin_plain", "unwind_plugin_simple"};
  const struct hp_module *known[2] = {NULL, NULL};
  uint32_t first_index = hp_modules_first()->index;
  char copy[PATH_MAX], from[PATH_MAX];
  uintptr_t first_start = 0;
  snprintf(copy, sizeof copy, "%s/unwind_plugin_turns.so", plugin_directory);
  for (int i = 0; i < TURNS; i++) {
    int which = i % 5 % 2; /* 0 1 0 1 0, 0 1 0 1 0 */
    plugin_function function;
    snprintf(from, sizeof from, "%s/%s.so", plugin_directory, names[which]);
    copy_file(from, copy);
    void *handle = open_plugin("unwind_plugin_turns", &function);
    function(walk_here);
    const struct hp_module *module = hp_modules_find((uintptr_t)function);
    assert_non_null(module);
    assert_int_equal(module->build_id_size, 0);
    if (i == 0) first_start = module->map_start;
    assert_int_equal(module->map_start, first_start); /* else this test shows nothing */
    if (i > 0 && known[which] == NULL) known[which] = module;
    if (i > 2) assert_ptr_equal(module, known[which]);
    if (i > 1) assert_ptr_not_equal(known[0], known[1]);
    assert_true(close_plugin(handle));
  }
  unlink(copy);
  assert_in_range(hp_modules_first()->index, first_index + 1, first_index + 3);
}

static void test_what_is_loaded_is_told_with_a_sequence(void **state) {
  (void)state;
  struct hp_arena arena = {0};
  uint32_t sequence, again;
  plugin_function function;
  void *handle = open_plugin("unwind_plugin_small", &function);
  function(walk_here);
  const struct hp_module_set *loaded = hp_modules_loaded(&arena, &sequence);
  const struct hp_module *module = hp_module_set_find(loaded, (uintptr_t)function);
  assert_non_null(module);
  assert_int_equal(hp_modules_sequence(), sequence);
  function(walk_here);
  assert_int_equal(hp_modules_sequence(), sequence);
  assert_true(close_plugin(handle));
  assert_int_not_equal(hp_modules_sequence(), sequence);
  assert_int_equal(hp_modules_sequence() % 2, 0);
  assert_ptr_equal(hp_module_set_find(loaded, (uintptr_t)function), module); /* as it was */
  const struct hp_module_set *now = hp_modules_loaded(&arena, &again);
  assert_null(hp_module_set_find(now, (uintptr_t)function));
  assert_int_not_equal(now->id, loaded->id);
  assert_non_null(hp_module_set_find(now, (uintptr_t)&walk_here));
  hp_arena_reset(&arena);
}

static void test_sets_are_kept_once_and_without_memory_unknown(void **state) {
  (void)state;
  struct hp_arena arena = {0};
  const struct hp_module *modules[HP_MODULE_SET_MAX];
  uint32_t ids[HP_MODULE_SET_MAX + 1];
  uint32_t count = 0;
  for (const struct hp_module *m = hp_modules_first(); m != NULL && count < HP_MODULE_SET_MAX; m = m->next) {
    modules[count++] = m;
  }
  assert_true(count >= 3);
  for (uint32_t n = 0; n <= count; n++) ids[n] = hp_module_set_keep_locked(&arena, modules, n);
  size_t before = arena.mapped_bytes;
  for (int i = 0; i < 100000; i++) {
    uint32_t n = (uint32_t)i % (count + 1);
    assert_int_equal(hp_module_set_keep_locked(&arena, modules, n), ids[n]);
  }
  assert_int_equal(arena.mapped_bytes, before);
  for (uint32_t n = 0; n <= count; n++) {
    assert_true(ids[n] > HP_MODULE_SET_UNKNOWN);
    assert_int_equal(hp_module_set_get(ids[n])->count, n);
    for (uint32_t other = 0; other < n; other++) assert_int_not_equal(ids[n], ids[other]);
  }
  uintptr_t pcs[] = {(uintptr_t)&walk_here + 1};
  hp_modules_lock();
  assert_false(hp_modules_are_back_locked(HP_MODULE_SET_UNKNOWN, pcs, 1));
  hp_modules_unlock();
  assert_int_equal(hp_module_set_get(HP_MODULE_SET_UNKNOWN)->count, 0);
}

/* A library is closed by a way that is not watched (libc closes its own so): found out at the first walk through whatever is
 * there next, unless that has the very same return addresses. */
static void test_unload_that_went_unnoticed_is_found_out(void **state) {
  (void)state;
  plugin_function function, other;
  void *handle = open_plugin("unwind_plugin_small", &function);
  function(walk_here);
  const struct hp_module *module = hp_modules_find((uintptr_t)function);
  dlclose(handle);
  handle = open_plugin("unwind_plugin_other", &other);
  unw_flush_cache(unw_local_addr_space, 0, 0);
  other(walk_here);
  if (other == function) assert_true(pair.flags & HP_UNWIND_MODULES_DIED);
  assert_true(walk_pair_check(&pair));
  if (other == function) assert_true(module->is_gone);
  close_plugin(handle);
  hp_modules_check();
  assert_true(module->is_gone);
}

static bool storm_is_over; /* atomic */

static void *load_and_unload(void *name) {
  for (int i = 0; i < STORM_ROUNDS; i++) {
    plugin_function function;
    void *handle = open_plugin(name, &function);
    function(check_here);
    close_plugin(handle);
  }
  return NULL;
}

static void *walk_all_the_time(void *unused) {
  (void)unused;
  uintptr_t first[64], again[64];
  unsigned flags;
  while (!hp_load_relaxed(&storm_is_over)) {
    size_t n = walk_ours(first, 64, &flags);
    size_t m = walk_ours(again, 64, &flags);
    if (n != m || (flags & ~HP_UNWIND_HINTS) != 0 || memcmp(first + 1, again + 1, (n - 1) * sizeof(*first)) != 0)
      hp_add_relaxed(&walk_differences, 1);
  }
  return NULL;
}

static void test_walks_survive_a_storm_of_loading(void **state) {
  (void)state;
  unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
  pthread_t walkers[2], loaders[2];
  const char *names[] = {"unwind_plugin_small", "unwind_plugin_large"};
  for (int i = 0; i < 2; i++) pthread_create(&walkers[i], NULL, walk_all_the_time, NULL);
  for (int i = 0; i < 2; i++) pthread_create(&loaders[i], NULL, load_and_unload, (void *)(uintptr_t)names[i]);
  for (int i = 0; i < 2; i++) pthread_join(loaders[i], NULL);
  hp_store_relaxed(&storm_is_over, true);
  for (int i = 0; i < 2; i++) pthread_join(walkers[i], NULL);
  assert_int_equal(walk_differences, 0);
}

/* ---- a held loader lock ---- */

static sem_t is_inside, may_leave;

static int block_in_callback(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)info;
  (void)size;
  (void)unused;
  sem_post(&is_inside);
  sem_wait(&may_leave);
  return 1;
}

static void *hold_loader_lock(void *unused) {
  (void)unused;
  dl_iterate_phdr(block_in_callback, NULL);
  return NULL;
}

static void block_in_constructor(void) {
  plugin_constructor_hook = NULL;
  sem_post(&is_inside);
  sem_wait(&may_leave);
}

static void *load_slowly(void *unused) {
  (void)unused;
  plugin_function function;
  plugin_constructor_hook = block_in_constructor;
  dlclose(open_plugin("unwind_plugin_constructor", &function));
  return NULL;
}

static void walk_while(void *(*holder)(void *)) {
  pthread_t thread;
  uintptr_t pcs[64];
  unsigned flags;
  sem_init(&is_inside, 0, 0);
  sem_init(&may_leave, 0, 0);
  pthread_create(&thread, NULL, holder, NULL);
  sem_wait(&is_inside);
  alarm(300); /* a walk that waits would wait for ever */
  for (int i = 0; i < 100; i++) {
    hp_unwind_flush();
    assert_true(walk_ours(pcs, 64, &flags) > 3);
    assert_int_equal(flags & ~HP_UNWIND_HINTS, 0);
    hp_modules_check();
  }
  alarm(0);
  sem_post(&may_leave);
  pthread_join(thread, NULL);
}

static void test_nobody_waits_for_a_blocked_dl_iterate_phdr(void **state) {
  (void)state;
  walk_while(hold_loader_lock);
}

static void test_nobody_waits_for_a_blocked_dlopen(void **state) {
  (void)state;
  walk_while(load_slowly);
}

/* ---- what is remembered ---- */

static const struct hp_module *note(uintptr_t address) {
  bool died = false;
  const struct hp_module *module = hp_modules_note(address, &died);
  assert_false(died);
  return module;
}

static void test_program_is_known_as_itself(void **state) {
  (void)state;
  const struct hp_module *module = note((uintptr_t)&note);
  assert_non_null(module);
  assert_true(module->is_executable);
  assert_false(module->is_vdso);
  assert_string_equal(module->path, "");
  assert_ptr_equal(note((uintptr_t)&walk_here), module);
  assert_true(module->text_start <= (uintptr_t)&note && (uintptr_t)&note < module->text_end);
}

/* /proc/self/maps has the same line. */
static void test_text_of_libc_is_as_the_kernel_says(void **state) {
  (void)state;
  const struct hp_module *module = note((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"));
  assert_non_null(module);
  char line[PATH_MAX + 100];
  bool is_found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof(line), maps) != NULL) {
    unsigned long start, end, offset;
    char flags[8];
    if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, flags, &offset) != 4 || start != module->text_start) continue;
    assert_int_equal(end, module->text_end);
    assert_int_equal(offset, module->text_offset);
    assert_int_equal(flags[2], 'x');
    assert_non_null(strstr(line, module->path));
    is_found = true;
  }
  fclose(maps);
  assert_true(is_found);
}

static int find_build_id(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  const struct hp_module *module = found;
  if (strcmp(info->dlpi_name, module->path) != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
    const char *notes = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (memmem(notes, info->dlpi_phdr[i].p_memsz, module->build_id, module->build_id_size) != NULL) return 1;
  }
  return 2;
}

static void test_build_id_is_the_one_of_the_file(void **state) {
  (void)state;
  const struct hp_module *module = note((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"));
  assert_int_equal(module->build_id_size, 20);
  assert_int_equal(dl_iterate_phdr(find_build_id, (void *)(uintptr_t)module), 1);
}

static void test_vdso_is_known_as_such(void **state) {
  (void)state;
  uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) return;
  const struct hp_module *module = note(vdso + 64);
  assert_non_null(module);
  assert_true(module->is_vdso);
  assert_false(module->is_executable);
}

static void test_no_module_where_no_object_is(void **state) {
  (void)state;
  int on_stack;
  assert_null(note((uintptr_t)&on_stack));
  assert_null(note(0));
  assert_null(note(UINTPTR_MAX));
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_library_at_reused_addresses_has_its_own_rules),
      cmocka_unit_test(test_stacks_belong_to_the_library_they_were_taken_in),
      cmocka_unit_test(test_builds_without_an_id_are_told_apart_by_their_tables),
      cmocka_unit_test(test_what_is_loaded_is_told_with_a_sequence),
      cmocka_unit_test(test_sets_are_kept_once_and_without_memory_unknown),
      cmocka_unit_test(test_unload_that_went_unnoticed_is_found_out),
      cmocka_unit_test(test_walks_survive_a_storm_of_loading),
      cmocka_unit_test(test_nobody_waits_for_a_blocked_dl_iterate_phdr),
      cmocka_unit_test(test_nobody_waits_for_a_blocked_dlopen),
      cmocka_unit_test(test_program_is_known_as_itself),
      cmocka_unit_test(test_text_of_libc_is_as_the_kernel_says),
      cmocka_unit_test(test_build_id_is_the_one_of_the_file),
      cmocka_unit_test(test_vdso_is_known_as_such),
      cmocka_unit_test(test_no_module_where_no_object_is),
      cmocka_unit_test(test_a_child_forked_during_an_unload_caches_again),
      cmocka_unit_test(test_a_child_forked_by_the_unloading_thread_ends_it),
  };
  plugin_directory = argc > 1 ? argv[1] : ".";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
