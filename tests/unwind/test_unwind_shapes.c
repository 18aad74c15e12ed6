/* SPDX-License-Identifier: MIT
 * test_unwind_shapes.c - random call paths through frames of every shape and every set of compiler options, compared with
 * libunwind at the leaf: in one thread, and in four at once with an empty cache every now and then. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "frame_shapes.h"
#include "rng.h"
#include "walk_compare.h"

#if defined(HP_EMULATED) /* cross-compiled: libunwind is slow there */
enum { PATHS = 1000 };
#else
enum { PATHS = 4000 };
#endif
enum { PATH_MAX_LENGTH = 40, THREADS = 4 };

long path_next(struct path *path, long value) {
  if (path->at == path->length) {
    path->leaf();
    return value;
  }
  long result = path->shapes[path->at++](path, value);
  __asm__ volatile(""); /* no tail call */
  return result;
}

static void check_leaf(void) {
  walk_check();
  __asm__ volatile("");
}

static void run_paths(uint64_t seed, int count) {
  struct hp_rng rng = {seed};
  unsigned sets = 0;
  while (all_shapes[sets] != NULL) sets++;
  for (int i = 0; i < count; i++) {
    frame_shape shapes[PATH_MAX_LENGTH];
    size_t length = 1 + hp_rng_next(&rng) % PATH_MAX_LENGTH;
    for (size_t at = 0; at < length; at++)
      shapes[at] = all_shapes[hp_rng_next(&rng) % sets][hp_rng_next(&rng) % SHAPE_COUNT];
    struct path path = {.shapes = shapes, .length = length, .at = 0, .leaf = check_leaf};
    path_next(&path, (long)(hp_rng_next(&rng) % 1000));
    if (i % (PATHS / 8) == PATHS / 8 - 1) hp_unwind_flush();
  }
}

static void test_random_paths_equal_libunwind(void **state) {
  (void)state;
  run_paths(1, PATHS);
  assert_true(walk_comparisons >= PATHS);
  assert_int_equal(walk_differences, 0);
}

static void *run_thread(void *seed) {
  run_paths((uintptr_t)seed, PATHS / 2);
  return NULL;
}

static void test_random_paths_in_four_threads(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run_thread, (void *)(i + 7));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(walk_differences, 0);
}

static void test_hardly_any_frame_needs_the_slow_path(void **state) {
  (void)state;
  struct hp_unwind_stats stats;
  hp_unwind_get_stats(&stats);
  print_message("%lu comparisons, %lu misses, %lu slow frames\n", walk_comparisons, stats.rule_misses, stats.slow_walks);
  assert_true(stats.slow_walks * 100 < walk_comparisons);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_paths_equal_libunwind),
      cmocka_unit_test(test_random_paths_in_four_threads),
      cmocka_unit_test(test_hardly_any_frame_needs_the_slow_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
