/* SPDX-License-Identifier: MIT
 * test_retention.c - HEAPPROF_KEEP: the last files stay. Several kinds; a name that comes again; a forked child. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"
#include "retention.h"
#include "unit_test.h"

static char folder[] = "/tmp/test_retention.XXXXXX";

static void make_file(const char *name, int bytes, char path[200]) {
  snprintf(path, 200, "%s/%s", folder, name);
  int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  assert_int_equal(write(fd, "1234", (size_t)bytes), bytes);
  close(fd);
}
static void write_file(const char *name) {
  char path[200];
  make_file(name, 4, path);
  hp_retention_written(path);
}
static void set_time(const char *name, int from_now_seconds) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  struct stat now;
  assert_int_equal(stat(path, &now), 0);
  struct timespec times[2] = {{now.st_mtim.tv_sec + from_now_seconds, 0}, {now.st_mtim.tv_sec + from_now_seconds, 0}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}
static bool is_there(const char *name) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

/* The ring is made once, from the settings of the process: 3 dumps of 2 kinds. */
static int set_up(void **state) {
  (void)state;
  hp_process.config.keep = 3;
  hp_process.config.kinds = 1 << 0 | 1 << 3;
  return mkdtemp(folder) == NULL;
}

static void the_last_dumps_of_every_kind_stay(void **state) {
  (void)state;
  char name[32];
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "a.%d.full", i);
    write_file(name);
    snprintf(name, sizeof name, "a.%d.delta", i);
    write_file(name);
  }
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "a.%d.full", i);
    assert_int_equal(is_there(name), i >= 5);
    snprintf(name, sizeof name, "a.%d.delta", i);
    assert_int_equal(is_there(name), i >= 5);
  }
}

static void a_name_that_comes_again_is_not_removed(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) write_file("same");
  assert_true(is_there("same"));
}

static void write_until_all_before_are_out(const char *prefix) {
  char name[32];
  for (int i = 0; i < 6; i++) {
    snprintf(name, sizeof name, "%s.%d", prefix, i);
    write_file(name);
  }
}

/* As %t does: a signal's dump in the second of a periodic one has its name. */
static void a_dump_that_is_to_stay_stays_at_the_name_of_a_periodic_one(void **state) {
  (void)state;
  write_file("asked");
  char path[200];
  make_file("asked", 4, path);
  hp_retention_kept(path);
  write_until_all_before_are_out("d");
  assert_true(is_there("asked"));
}

/* As a template without %p does: another process has written there. */
static void a_file_of_another_process_at_the_name_of_ours_is_not_removed(void **state) {
  (void)state;
  write_file("other's");
  write_file("ours");
  char path[200];
  make_file("other's", 3, path);
  write_until_all_before_are_out("e");
  assert_true(is_there("other's"));
  assert_false(is_there("ours"));
  /* Of the same size, but from another time; and ours as a file system gives its time that rounds it. */
  write_file("other's");
  write_file("rounded");
  set_time("other's", -10);
  set_time("rounded", -1);
  write_until_all_before_are_out("f");
  assert_true(is_there("other's"));
  assert_false(is_there("rounded"));
}

static void in_a_deep_folder_too(void **state) {
  (void)state;
  enum { DEEP = 700 };
  char path[DEEP + 100], first[DEEP + 100];
  size_t n = (size_t)snprintf(path, sizeof path, "%s", folder);
  while (n < DEEP) {
    n += (size_t)snprintf(path + n, sizeof path - n, "/a folder with a long name");
    assert_int_equal(mkdir(path, 0700), 0);
  }
  for (int i = 0; i < 7; i++) {
    snprintf(path + n, sizeof path - n, "/g.%d", i);
    if (i == 0) strcpy(first, path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    hp_retention_written(path);
    assert_int_equal(access(first, F_OK) == 0, i < 6);
  }
}

static void a_forked_child_owns_none_of_them(void **state) {
  (void)state;
  char name[32];
  for (int i = 0; i < 6; i++) {
    snprintf(name, sizeof name, "b.%d", i);
    write_file(name);
  }
  hp_retention_forget();
  for (int i = 0; i < 6; i++) {
    snprintf(name, sizeof name, "c.%d", i);
    write_file(name);
  }
  assert_true(is_there("b.0") && is_there("b.5") && is_there("c.0"));
  write_file("c.6");
  assert_false(is_there("c.0"));
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_dumps_of_every_kind_stay),
                                     cmocka_unit_test(a_name_that_comes_again_is_not_removed),
                                     cmocka_unit_test(a_dump_that_is_to_stay_stays_at_the_name_of_a_periodic_one),
                                     cmocka_unit_test(a_file_of_another_process_at_the_name_of_ours_is_not_removed),
                                     cmocka_unit_test(in_a_deep_folder_too),
                                     cmocka_unit_test(a_forked_child_owns_none_of_them)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
