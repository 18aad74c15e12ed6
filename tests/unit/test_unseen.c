/* SPDX-License-Identifier: MIT
 * test_unseen.c - what is told of memory that the profile cannot show, and above all when nothing is. */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hot.h"
#include "log.h"
#include "unit_test.h"
#include "unseen.c" /* for what is said once a process */

struct hp_hot hp_hot;

#define MIB(n) ((uint64_t)(n) << 20)

static struct hp_allocator_figures figures;
void hp_allocator_figures_get(struct hp_allocator_figures *out) { *out = figures; }

static char said[512];
static unsigned lines;
void hp_log(enum hp_log_level level, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(said, sizeof said, format, args);
  va_end(args);
  assert_int_equal(level, HP_LOG_WARN);
  lines++;
}

/* ---- one judgement ---- */

/* 300 MiB of blocks of 100 KiB, of which 100 are in use, sampled exactly; nothing else. */
static struct hp_unseen_facts ordinary(void) {
  return (struct hp_unseen_facts){
      .anon_bytes = MIB(310),
      .other_bytes = MIB(2),
      .threads = {.main_stack_bytes = MIB(1), .count = 1},
      .rate_max_bytes = 1,
      .is_inuse_whole = true,
      .alloc_objects = 3072,
      .alloc_bytes = (double)MIB(300),
      .inuse_objects = 3072,
      .inuse_bytes = (double)MIB(300),
      .allocator = {.name = "glibc", .has_figures = true, .inuse_bytes = MIB(301), .system_bytes = MIB(305)},
  };
}

static struct hp_unseen judge(const struct hp_unseen_facts *facts) {
  struct hp_unseen found;
  hp_unseen_judge(facts, &found);
  return found;
}

static void expect_nothing(struct hp_unseen_facts facts) {
  struct hp_unseen found = judge(&facts);
  assert_int_equal(found.resident_bytes, 0);
  assert_int_equal(found.allocator_bytes, 0);
  assert_false(found.is_certain);
}

static void an_ordinary_program_is_told_nothing(void **state) {
  (void)state;
  expect_nothing(ordinary());
  struct hp_unseen_facts f = ordinary();
  f.anon_bytes = MIB(10000); /* all freed again, and none of it given back */
  f.alloc_bytes = (double)MIB(10000);
  f.inuse_bytes = (double)MIB(5);
  f.allocator.inuse_bytes = MIB(6);
  f.allocator.system_bytes = MIB(9990);
  expect_nothing(f);
  f.allocator.has_figures = false;
  expect_nothing(f);
}

static void what_was_allocated_since_the_allocator_was_asked_is_seen(void **state) {
  (void)state;
  struct hp_unseen_facts f = ordinary();
  f.anon_bytes = f.allocator.system_bytes + MIB(400);
  assert_int_not_equal(judge(&f).resident_bytes, 0);
  f.grown_bytes = (double)MIB(400);
  expect_nothing(f);
  f.grown_bytes = 1e6; /* in small pieces, each on pages of its own */
  f.grown_objects = (double)MIB(400) / 8192;
  expect_nothing(f);
}

static void stacks_static_data_and_the_profiler_are_no_mystery(void **state) {
  (void)state;
  struct hp_unseen_facts f = ordinary();
  f.anon_bytes += MIB(1500);
  f.threads.count = 201;
  expect_nothing(f);
  f = ordinary();
  f.anon_bytes += MIB(1500);
  f.threads.main_stack_bytes = MIB(1500);
  expect_nothing(f);
  f = ordinary();
  f.anon_bytes += MIB(1500);
  f.other_bytes = MIB(1500);
  expect_nothing(f);
}

static void mapped_memory_is_told_with_its_size(void **state) {
  (void)state;
  struct hp_unseen_facts f = ordinary();
  f.anon_bytes += MIB(400);
  struct hp_unseen found = judge(&f);
  assert_in_range(found.resident_bytes, MIB(360), MIB(400));
  assert_false(found.is_certain); /* as much as that might have been freed */
  assert_int_equal(found.allocator_bytes, 0);
  f.anon_bytes = MIB(310) + MIB(190);
  expect_nothing(f); /* too little to speak of */
  f.anon_bytes = MIB(3100);
  f.alloc_bytes = f.inuse_bytes = (double)MIB(2690);
  f.allocator.inuse_bytes = MIB(2691);
  f.allocator.system_bytes = MIB(2700);
  expect_nothing(f); /* small beside the rest */
}

static void more_than_was_ever_allocated_is_certain(void **state) {
  (void)state;
  struct hp_unseen_facts f = ordinary();
  f.anon_bytes = MIB(1400);
  f.allocator.has_figures = false;
  struct hp_unseen found = judge(&f);
  assert_true(found.is_certain);
  assert_in_range(found.resident_bytes, MIB(700), MIB(800));
  f.allocator.has_figures = true;
  found = judge(&f);
  assert_in_range(found.resident_bytes, MIB(1050), MIB(1090)); /* and known better */
}

static void old_figures_are_not_held_against_it(void **state) {
  (void)state;
  struct hp_unseen_facts f = ordinary();
  f.anon_bytes = MIB(3000);
  f.alloc_bytes = (double)MIB(3000);
  f.allocator.age_nanos = 200000000;
  expect_nothing(f);
}

static void what_was_not_sampled_is_not_held_against_it(void **state) {
  (void)state;
  struct hp_unseen_facts f = ordinary();
  f.allocator.has_figures = false;
  f.anon_bytes = MIB(1400);
  f.alloc_bytes_error = (double)MIB(100);
  expect_nothing(f);
  f.alloc_bytes_error = 0;
  f.rate_max_bytes = MIB(32);
  expect_nothing(f);
  f.rate_max_bytes = UINT64_MAX; /* it was off for a time */
  expect_nothing(f);
  f = ordinary();
  f.inuse_bytes = f.inuse_objects = 0;
  f.rate_max_bytes = UINT64_MAX;
  expect_nothing(f);
  f.rate_max_bytes = 1;
  f.is_inuse_whole = false;
  expect_nothing(f);
}

static void blocks_that_came_past_us_are_told(void **state) {
  (void)state;
  struct hp_unseen_facts f = ordinary();
  f.inuse_bytes = (double)MIB(100);
  f.inuse_objects = 1024;
  struct hp_unseen found = judge(&f);
  assert_in_range(found.allocator_bytes, MIB(185), MIB(200));
  assert_int_equal(found.resident_bytes, 0);
  f.inuse_objects = 4.1e6; /* of 25 bytes: the rest is headers and rounding */
  expect_nothing(f);
  f.inuse_objects = 1024;
  f.allocator.name = "jemalloc"; /* rounds in ways of its own */
  expect_nothing(f);
}

static void blocks_of_the_programs_own_allocator_are_seen(void **state) {
  (void)state;
  struct hp_unseen_facts f = ordinary();
  f.anon_bytes = MIB(900);
  f.alloc_bytes = f.inuse_bytes = (double)MIB(890); /* by heapprof_report_alloc, beyond glibc's 301 */
  expect_nothing(f);
}

/* ---- dumps in a row ---- */

static uint32_t reading_number;

static void look(uint64_t anon_mib, uint64_t system_mib, uint64_t age_nanos) {
  static int64_t none[1][HP_VALUES];
  struct hp_reading reading = {.values = none};
  reading.totals[HP_ALLOC_BYTES] = (int64_t)MIB(5000);
  struct hp_resident resident = {.anon_bytes = MIB(anon_mib)};
  figures = (struct hp_allocator_figures){.name = "jemalloc",
                                          .has_figures = true,
                                          .system_bytes = MIB(system_mib),
                                          .age_nanos = age_nanos,
                                          .number = reading_number};
  hp_unseen_look(&reading, &resident);
}

static void look_anew(uint64_t anon_mib, uint64_t system_mib, uint64_t age_nanos) {
  reading_number += 2;
  look(anon_mib, system_mib, age_nanos);
}

/* glibc says it has `then_mib` in use, as the books said when it was asked; they say `now_mib` now. */
static void look_when_freed(uint64_t then_mib, uint64_t now_mib) {
  static int64_t none[1][HP_VALUES];
  struct hp_reading reading = {.values = none};
  reading.totals[HP_ALLOC_BYTES] = (int64_t)MIB(5000);
  reading.totals[HP_INUSE_BYTES] = (int64_t)MIB(now_mib);
  struct hp_resident resident = {.anon_bytes = MIB(310)};
  reading_number += 2;
  figures = (struct hp_allocator_figures){.name = "glibc",
                                          .has_figures = true,
                                          .inuse_bytes = MIB(300),
                                          .system_bytes = MIB(310),
                                          .number = reading_number,
                                          .totals = {.inuse_bytes = (double)MIB(then_mib)}};
  hp_unseen_look(&reading, &resident);
}

static void what_was_freed_since_the_allocator_was_asked_is_not_held_against_it(void **state) {
  (void)state;
  for (int dump = 0; dump < 3; dump++) {
    look_when_freed(300, 0);
    assert_int_equal(hp_unseen_found().allocator_bytes, 0);
  }
  for (int dump = 0; dump < 2; dump++) look_when_freed(0, 0);
  hp_unseen_after_fork(); /* in a child nothing has been found yet */
  for (int dump = 0; dump < 2; dump++) look_when_freed(0, 0);
  assert_int_equal(hp_unseen_found().allocator_bytes, 0);
  look_when_freed(0, 0);
  assert_in_range(hp_unseen_found().allocator_bytes, MIB(290), MIB(300));
  look_when_freed(300, 300);
  is_said = false;
  lines = 0;
}

static void figures_of_two_moments_must_say_so_thrice_and_it_is_logged_once(void **state) {
  (void)state;
  look_anew(1000, 100, 0);
  assert_int_equal(hp_unseen_found().resident_bytes, 0);
  look(1000, 100, 0); /* the same figures */
  assert_int_equal(hp_unseen_found().resident_bytes, 0);
  look_anew(1000, 990, 0); /* they had been taken while it grew */
  assert_int_equal(hp_unseen_found().resident_bytes, 0);
  look_anew(1000, 100, 0);
  look_anew(1000, 100, 0);
  assert_int_equal(lines, 0);
  look(1000, 100, 1000000000); /* knows nothing */
  assert_int_equal(hp_unseen_found().resident_bytes, 0);
  look_anew(1000, 100, 0);
  assert_in_range(hp_unseen_found().resident_bytes, MIB(800), MIB(900));
  assert_int_equal(lines, 1);
  assert_non_null(strstr(said, " MiB of "));
  look(1000, 100, 0);
  assert_in_range(hp_unseen_found().resident_bytes, MIB(800), MIB(900));
  assert_int_equal(lines, 1);
  look(200, 100, 0); /* it was unmapped */
  assert_int_equal(hp_unseen_found().resident_bytes, 0);
  hp_unseen_look(NULL, NULL); /* no /proc */
  assert_int_equal(hp_unseen_found().resident_bytes, 0);
}

/* ---- what the kernel counts ---- */
static volatile char held[8 << 20]; /* the kernel counts late, a few hundred pages */

static int look_at_kernel(void) {
  struct hp_resident r;
  struct hp_resident_threads t;
  for (size_t i = 0; i < sizeof held; i += 4096) held[i] = 1;
  if (!hp_resident_read(&r) || !hp_resident_read_threads(&t)) return 1;
  if (r.anon_bytes < sizeof held / 2 || r.anon_bytes > MIB(1024) || r.file_bytes == 0) return 2;
#if defined(__aarch64__)
  enum { THREADS_MAX = 3 }; /* qemu-user has one of its own */
#else
  enum { THREADS_MAX = 2 };
#endif
  return t.count > THREADS_MAX || t.main_stack_bytes == 0 ? 3 : 0;
}

static pthread_t main_thread;

/* The thread whose number is the process's stays, as a zombie, until all are gone. */
static bool main_is_gone(void) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
  int fd = open(path, O_RDONLY);
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  const char *state = strrchr(text, ')');
  return state != NULL && state[2] == 'Z';
}

static void *look_when_main_has_left(void *unused) {
  pthread_join(main_thread, NULL);
  for (int i = 0; i < 60000 && !main_is_gone(); i++) usleep(1000); /* joined is a little before gone */
  _exit(look_at_kernel());
  return unused;
}

static void the_kernels_figures_are_there_when_the_main_thread_has_left(void **state) {
  (void)state;
  assert_int_equal(look_at_kernel(), 0);
#if defined(__SANITIZE_THREAD__)
  return; /* its runtime does not survive the joining of the main thread (a CHECK of its own) */
#endif
  int status;
  pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    main_thread = pthread_self();
    if (pthread_create(&thread, NULL, look_when_main_has_left, NULL) != 0) _exit(4);
    pthread_exit(NULL);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_ordinary_program_is_told_nothing),
      cmocka_unit_test(what_was_allocated_since_the_allocator_was_asked_is_seen),
      cmocka_unit_test(stacks_static_data_and_the_profiler_are_no_mystery),
      cmocka_unit_test(mapped_memory_is_told_with_its_size),
      cmocka_unit_test(more_than_was_ever_allocated_is_certain),
      cmocka_unit_test(old_figures_are_not_held_against_it),
      cmocka_unit_test(what_was_not_sampled_is_not_held_against_it),
      cmocka_unit_test(blocks_that_came_past_us_are_told),
      cmocka_unit_test(blocks_of_the_programs_own_allocator_are_seen),
      cmocka_unit_test(the_kernels_figures_are_there_when_the_main_thread_has_left),
      cmocka_unit_test(what_was_freed_since_the_allocator_was_asked_is_not_held_against_it),
      cmocka_unit_test(figures_of_two_moments_must_say_so_thrice_and_it_is_logged_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
