/* SPDX-License-Identifier: MIT
 * test_heap.c - the private heap and the one ceiling. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "budget.h"
#include "forbid_memory.h"
#include "heap.h"
#include "heap_os.h"
#include "unit_test.h"

/* What jemalloc asks the system for comes here (--wrap). */
static bool is_refusing;
static unsigned refusals;
void *__real_hp_heap_os_mmap(void *at, size_t n, int prot, int flags, int fd, long offset);
void *__wrap_hp_heap_os_mmap(void *at, size_t n, int prot, int flags, int fd, long offset);
void *__wrap_hp_heap_os_mmap(void *at, size_t n, int prot, int flags, int fd, long offset) {
  if (!is_refusing) return __real_hp_heap_os_mmap(at, n, prot, flags, fd, offset);
  refusals++;
  errno = ENOMEM;
  return MAP_FAILED;
}

/* First of all: the heap has not begun yet. */
static void a_start_without_memory_is_refused_and_succeeds_later(void **state) {
  (void)state;
  struct rlimit before;
  forbid_memory(&before);
  void *first[3] = {hp_heap_alloc(100), hp_heap_alloc_aligned_zero(64, 100), hp_heap_alloc(1 << 20)};
  setrlimit(RLIMIT_AS, &before);
  for (int i = 0; i < 3; i++) assert_null(first[i]);
  assert_int_equal(hp_memory_used(), 0);
  char *later = hp_heap_alloc(100);
  assert_non_null(later);
  memset(later, 1, 100);
  hp_heap_free(later);
}

static void without_memory_a_block_is_refused_and_costs_nothing(void **state) {
  (void)state;
  struct rlimit before;
  size_t base = hp_memory_used();
  forbid_memory(&before);
  void *refused[2] = {hp_heap_alloc(64 << 20), hp_heap_alloc_aligned_zero(4096, 64 << 20)};
  setrlimit(RLIMIT_AS, &before);
  assert_null(refused[0]);
  assert_null(refused[1]);
  assert_int_equal(hp_memory_used(), base);
}

/* Each call is a sample of the program's, which must not pay for the system's refusals one by one. */
static void a_system_that_goes_on_refusing_is_seldom_asked_and_is_asked_again(void **state) {
  (void)state;
  enum { CALLS = 20000 };
  hp_heap_free(hp_heap_alloc(1)); /* a start is another claim; where no limit holds (qemu) it has not been tried */
  size_t base = hp_memory_used();
  is_refusing = true;
  refusals = 0;
  for (int i = 0; i < CALLS; i++) assert_null(hp_heap_alloc(64 << 20));
  assert_in_range(refusals, 1, CALLS / 2);
  assert_int_equal(hp_memory_used(), base);
  is_refusing = false;
  void *block;
  while ((block = hp_heap_alloc(64 << 20)) == NULL) { /* at most some milliseconds; else the test's limit ends it */
  }
  hp_heap_free(block);
  for (int i = 0; i < CALLS; i++) { /* all is forgotten */
    assert_non_null(block = hp_heap_alloc(100));
    hp_heap_free(block);
  }
}

static void what_is_given_back_is_no_longer_used(void **state) {
  (void)state;
  hp_heap_free(hp_heap_alloc(1));
  size_t base = hp_memory_used();
  void *blocks[500];
  for (size_t i = 0; i < 500; i++) {
    blocks[i] = hp_heap_alloc(i * 37 + 1);
    assert_non_null(blocks[i]);
    assert_int_equal((uintptr_t)blocks[i] % 16, 0);
    memset(blocks[i], (int)i, i * 37 + 1);
  }
  assert_true(hp_memory_used() - base >= 500 * 499 / 2 * 37);
  for (int i = 0; i < 500; i++) hp_heap_free(blocks[i]);
  assert_int_equal(hp_memory_used(), base);
  hp_heap_free(NULL);
  hp_heap_trim();
}

static void aligned_blocks_are_aligned_and_zero(void **state) {
  (void)state;
  for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
    char *p = hp_heap_alloc_aligned_zero(alignment, 1000);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % alignment, 0);
    for (int i = 0; i < 1000; i++) assert_int_equal(p[i], 0);
    memset(p, 1, 1000);
    hp_heap_free(p);
  }
}

static void the_ceiling_holds_and_refusals_leave_nothing_behind(void **state) {
  (void)state;
  size_t base = hp_memory_used();
  hp_memory_set_ceiling(1 << 20);
  void *blocks[64];
  int n = 0;
  while (n < 64 && (blocks[n] = hp_heap_alloc(60000)) != NULL) n++;
  assert_true(n > 2 && n < 17);
  assert_true(hp_memory_used() <= 1 << 20);
  assert_true(hp_memory_is_full(HP_MEMORY_TABLES));
  size_t full = hp_memory_used();
  assert_null(hp_heap_alloc(60000));
  assert_int_equal(hp_memory_used(), full);
  assert_true(hp_memory_reserve((1 << 20) - full)); /* what the tables may not have, a dump may */
  assert_false(hp_memory_reserve(1));
  assert_false(hp_memory_reserve(SIZE_MAX)); /* no wrapping round */
  hp_memory_release((1 << 20) - full);
  while (n > 0) hp_heap_free(blocks[--n]);
  assert_int_equal(hp_memory_used(), base);
  hp_memory_set_ceiling(SIZE_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_start_without_memory_is_refused_and_succeeds_later),
                                     cmocka_unit_test(without_memory_a_block_is_refused_and_costs_nothing),
                                     cmocka_unit_test(a_system_that_goes_on_refusing_is_seldom_asked_and_is_asked_again),
                                     cmocka_unit_test(what_is_given_back_is_no_longer_used),
                                     cmocka_unit_test(aligned_blocks_are_aligned_and_zero),
                                     cmocka_unit_test(the_ceiling_holds_and_refusals_leave_nothing_behind)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
