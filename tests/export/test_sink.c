/* SPDX-License-Identifier: MIT
 * test_sink.c - files that appear whole or not at all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export_test.h"
#include "sink.h"

static char directory[64];
static char path[128];
static struct hp_file_sink sink;

static int setup(void **state) {
  (void)state;
  memset(&hp_sink_faults, 0, sizeof hp_sink_faults);
  strcpy(directory, "/tmp/hp_sink_XXXXXX");
  assert_non_null(mkdtemp(directory));
  snprintf(path, sizeof path, "%s/out.pb.gz", directory);
  return 0;
}

/* As on a file system that makes no file without a name. */
static int setup_named(void **state) {
  hp_sink_test_unnamed_errno = EOPNOTSUPP;
  return setup(state);
}

/* Where the tests run, can a file be made that has no name? */
static bool has_unnamed(void) {
  int fd = open(directory, O_TMPFILE | O_WRONLY, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  hp_sink_test_unnamed_errno = 0;
  hp_sink_test_forget();
  snprintf(command, sizeof command, "rm -rf '%s'", directory);
  return system(command);
}

/* Names in the directory, dot files too. */
static unsigned count_files(void) {
  unsigned n = 0;
  DIR *list = opendir(directory);
  assert_non_null(list);
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  }
  closedir(list);
  return n;
}

static int put(const char *to, const char *text) {
  int status = hp_file_sink_open(&sink, to);
  if (status == 0) status = sink.base.write(&sink.base, text, strlen(text));
  if (status == 0) return hp_file_sink_commit(&sink);
  hp_file_sink_abort(&sink);
  return status;
}

static void expect_content(const char *file, const char *want) {
  char got[128] = "";
  FILE *in = fopen(file, "r");
  assert_non_null(in);
  size_t n = fread(got, 1, sizeof got - 1, in);
  fclose(in);
  assert_int_equal(n, strlen(want));
  assert_string_equal(got, want);
}

static void test_mode_is_0600_whatever_the_umask(void **state) {
  (void)state;
  umask(0777);
  assert_int_equal(put(path, "mine"), 0);
  umask(0);
  struct stat stat;
  assert_int_equal(lstat(path, &stat), 0);
  assert_int_equal(stat.st_mode, S_IFREG | 0600);
}

static void test_file_appears_whole_with_mode_0600(void **state) {
  (void)state;
  umask(0);
  assert_int_equal(hp_file_sink_open(&sink, path), 0);
  assert_int_equal(sink.base.write(&sink.base, "one ", 4), 0);
  assert_int_equal(access(path, F_OK), -1); /* not before it is whole */
  assert_int_equal(count_files(), has_unnamed() && hp_sink_test_unnamed_errno == 0 ? 0 : 1);
  assert_int_equal(sink.base.write(&sink.base, "two", 3), 0);
  assert_int_equal(hp_file_sink_commit(&sink), 0);
  expect_content(path, "one two");
  struct stat stat;
  assert_int_equal(lstat(path, &stat), 0);
  assert_int_equal(stat.st_mode, S_IFREG | 0600);
  assert_int_equal(count_files(), 1);
  assert_int_equal(sink.bytes_written, 7);
}

static void test_existing_file_is_replaced_never_appended_to(void **state) {
  (void)state;
  assert_int_equal(put(path, "a longer content"), 0);
  assert_int_equal(put(path, "short"), 0);
  expect_content(path, "short");
  assert_int_equal(count_files(), 1);
}

static void test_symbolic_link_at_the_name_is_replaced_not_followed(void **state) {
  (void)state;
  char victim[128];
  snprintf(victim, sizeof victim, "%s/victim", directory);
  FILE *out = fopen(victim, "w");
  fputs("untouched", out);
  fclose(out);
  assert_int_equal(symlink(victim, path), 0);
  assert_int_equal(put(path, "profile"), 0);
  expect_content(victim, "untouched");
  expect_content(path, "profile");
  struct stat stat;
  assert_int_equal(lstat(path, &stat), 0);
  assert_true(S_ISREG(stat.st_mode));
}

static void test_directory_at_the_name_is_an_error_and_stays(void **state) {
  (void)state;
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(put(path, "profile"), -EISDIR);
  assert_int_equal(count_files(), 1);
  char slashed[160];
  snprintf(slashed, sizeof slashed, "%s/", path);
  assert_int_equal(put(slashed, "profile"), -EISDIR);
  assert_int_equal(put("", "profile"), -ENOENT);
}

/* What has the name is no file: an error, and it stays what it was. */
static void expect_refused(void) {
  struct stat before, after;
  assert_int_equal(lstat(path, &before), 0);
  assert_int_equal(put(path, "profile"), -ENXIO);
  assert_int_equal(lstat(path, &after), 0);
  assert_true(before.st_mode == after.st_mode && before.st_ino == after.st_ino);
  assert_int_equal(count_files(), 1);
  unlink(path);
}

static void test_pipe_or_link_to_a_device_is_an_error_and_stays(void **state) {
  (void)state;
  assert_int_equal(mkfifo(path, 0600), 0);
  expect_refused();
  assert_int_equal(symlink("/dev/null", path), 0);
  expect_refused();
}

/* As /dev/stdout is where the program's output goes to a file: as root a profile took its place, for everybody. */
static void test_link_to_a_descriptor_is_an_error_and_stays_also_where_that_is_a_file(void **state) {
  (void)state;
  char file[128], link[64];
  snprintf(file, sizeof file, "%s.output", directory);
  int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  assert_int_equal(symlink(link, path), 0);
  struct stat target;
  assert_int_equal(stat(path, &target), 0);
  assert_true(S_ISREG(target.st_mode));
  expect_refused();
  close(fd);
  unlink(file);
}

/* A device of our own: the system's would be gone for everybody if this failed. */
static void test_device_is_written_to_and_stays(void **state) {
  (void)state;
  struct stat stat;
  if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) != 0) return; /* not root: then nothing could replace a device either */
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return; /* a file system without devices */
  close(fd);
  assert_int_equal(put(path, "profile"), 0);
  assert_int_equal(lstat(path, &stat), 0);
  assert_true(S_ISCHR(stat.st_mode));
  assert_int_equal(hp_file_sink_open(&sink, path), 0);
  hp_file_sink_abort(&sink);
  assert_int_equal(lstat(path, &stat), 0);
  assert_int_equal(count_files(), 1);
}

static void test_missing_directory_is_an_error(void **state) {
  (void)state;
  char nowhere[160];
  snprintf(nowhere, sizeof nowhere, "%s/missing/out", directory);
  assert_int_equal(put(nowhere, "profile"), -ENOENT);
  assert_int_equal(count_files(), 0);
}

static void test_directory_removed_meanwhile_is_an_error_and_the_next_one_works(void **state) {
  (void)state;
  char deeper[128];
  char file[160];
  snprintf(deeper, sizeof deeper, "%s/deeper", directory);
  snprintf(file, sizeof file, "%s/out", deeper);
  assert_int_equal(mkdir(deeper, 0700), 0);
  assert_int_equal(hp_file_sink_open(&sink, file), 0);
  char command[160];
  snprintf(command, sizeof command, "rm -rf '%s'", deeper);
  assert_int_equal(system(command), 0);
  assert_int_equal(sink.base.write(&sink.base, "x", 1), 0);
  assert_int_equal(hp_file_sink_commit(&sink), -ENOENT);
  assert_int_equal(mkdir(deeper, 0700), 0);
  assert_int_equal(put(file, "profile"), 0);
  expect_content(file, "profile");
}

static void test_names_too_long_are_said_to_be(void **state) {
  (void)state;
  char *name = malloc(HP_PATH_MAX + 64);
  size_t used = (size_t)sprintf(name, "%s/", directory);
  memset(name + used, 'n', 255);
  name[used + 255] = 0;
  assert_int_equal(put(name, "profile"), 0); /* the longest there is: the temporary name is not made from it */
  expect_content(name, "profile");
  name[used + 255] = 'n';
  name[used + 256] = 0;
  assert_int_equal(put(name, "profile"), -ENAMETOOLONG);
  memset(name + used, 'n', HP_PATH_MAX);
  name[HP_PATH_MAX] = 0;
  assert_int_equal(put(name, "profile"), -ENAMETOOLONG);
  for (size_t i = used; i < HP_PATH_MAX - 4; i += 2) memcpy(name + i, "./", 2);
  name[HP_PATH_MAX - 5] = 0;
  assert_int_equal(put(name, "profile"), -ENAMETOOLONG); /* no room for the temporary name */
  free(name);
  assert_int_equal(count_files(), 1);
}

static void test_abort_leaves_nothing(void **state) {
  (void)state;
  assert_int_equal(hp_file_sink_open(&sink, path), 0);
  assert_int_equal(sink.base.write(&sink.base, "x", 1), 0);
  hp_file_sink_abort(&sink);
  assert_int_equal(count_files(), 0);
  hp_file_sink_abort(&sink); /* again: nothing to do */
  assert_int_equal(hp_file_sink_commit(&sink), -EBADF);
  assert_int_equal(count_files(), 0);
}

static void test_failures_leave_nothing_and_are_reported(void **state) {
  (void)state;
  hp_sink_faults.open_errno = EACCES;
  assert_int_equal(put(path, "profile"), -EACCES);
  hp_sink_faults.open_errno = EEXIST; /* for ever: gives up */
  assert_int_equal(put(path, "profile"), -EEXIST);
  hp_sink_faults = (struct hp_sink_faults){.write_errno = ENOSPC, .write_call = 1};
  assert_int_equal(put(path, "profile"), -ENOSPC);
  hp_sink_faults = (struct hp_sink_faults){.write_limit = 2, .write_errno = EIO, .write_call = 3};
  assert_int_equal(put(path, "profile"), -EIO); /* in the middle */
  hp_sink_faults = (struct hp_sink_faults){.close_errno = EDQUOT};
  assert_int_equal(put(path, "profile"), -EDQUOT);
  hp_sink_faults = (struct hp_sink_faults){.rename_errno = EPERM};
  assert_int_equal(put(path, "profile"), -EPERM);
  assert_int_equal(count_files(), 0);
  hp_sink_faults = (struct hp_sink_faults){0};
  assert_int_equal(put(path, "profile"), 0);
  expect_content(path, "profile");
}

static void test_short_interrupted_and_delayed_writes_go_on(void **state) {
  (void)state;
  hp_sink_faults.write_limit = 1;
  assert_int_equal(put(path, "profile"), 0);
  expect_content(path, "profile");
  hp_sink_faults = (struct hp_sink_faults){.write_limit = 3, .write_errno = EINTR, .write_call = 2};
  assert_int_equal(put(path, "interrupted"), 0);
  expect_content(path, "interrupted");
  hp_sink_faults = (struct hp_sink_faults){.write_limit = 3, .write_errno = EAGAIN, .write_call = 2};
  assert_int_equal(put(path, "delayed"), 0);
  expect_content(path, "delayed");
}

static void test_descriptor_that_became_another_file_is_left_alone(void **state) {
  (void)state;
  char other[128];
  snprintf(other, sizeof other, "%s/other", directory);
  assert_int_equal(hp_file_sink_open(&sink, path), 0);
  FILE *file = fopen(other, "w"); /* the program closed all descriptors and opened its own */
  assert_int_equal(dup2(fileno(file), sink.fd), sink.fd);
  int fd = sink.fd;
  assert_int_equal(sink.base.write(&sink.base, "profile", 7), -EBADF);
  hp_file_sink_abort(&sink);
  assert_int_equal(write(fd, "mine", 4), 4);
  close(fd);
  fclose(file);
  expect_content(other, "mine");
  assert_int_equal(count_files(), 1);
}

static void test_forked_child_leaves_the_file_to_its_parent(void **state) {
  (void)state;
  assert_int_equal(hp_file_sink_open(&sink, path), 0);
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    hp_file_sink_forget(&sink);
    hp_file_sink_abort(&sink); /* nothing to do any more */
    _exit(sink.fd == -1 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(sink.base.write(&sink.base, "profile", 7), 0);
  assert_int_equal(hp_file_sink_commit(&sink), 0);
  expect_content(path, "profile");
}

static void test_two_sinks_at_once_have_names_of_their_own(void **state) {
  (void)state;
  static struct hp_file_sink second;
  assert_int_equal(hp_file_sink_open(&sink, path), 0);
  assert_int_equal(hp_file_sink_open(&second, path), 0);
  assert_int_equal(sink.base.write(&sink.base, "first", 5), 0);
  assert_int_equal(second.base.write(&second.base, "second", 6), 0);
  assert_int_equal(hp_file_sink_commit(&sink), 0);
  expect_content(path, "first");
  assert_int_equal(hp_file_sink_commit(&second), 0);
  expect_content(path, "second");
  assert_int_equal(count_files(), 1);
}

/* As a process leaves it that is killed between link and rename; `holder`, if not NULL: still alive. */
static void make_shared_name(int *holder) {
  char name[160];
  snprintf(name, sizeof name, "%s/.heapprof.tmp", directory);
  int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
  assert_true(fd >= 0);
  assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
  if (holder != NULL) {
    *holder = fd;
  } else {
    close(fd);
  }
}

static void test_file_of_a_killed_process_is_removed_by_the_next(void **state) {
  (void)state;
  if (!has_unnamed()) skip();
  make_shared_name(NULL);
  assert_int_equal(put(path, "profile"), 0);
  expect_content(path, "profile");
  assert_int_equal(count_files(), 1);
}

static void test_file_of_a_living_process_is_left_alone(void **state) {
  (void)state;
  int holder;
  make_shared_name(&holder);
  assert_int_equal(put(path, "profile"), 0);
  expect_content(path, "profile");
  assert_int_equal(count_files(), 2);
  close(holder);
}

static void test_somebody_elses_file_of_the_shared_name_is_left_alone(void **state) {
  (void)state;
  char name[160];
  snprintf(name, sizeof name, "%s/.heapprof.tmp", directory);
  assert_int_equal(mkfifo(name, 0600), 0); /* opening it must not wait either */
  assert_int_equal(put(path, "one"), 0);
  assert_int_equal(count_files(), 2);
  assert_int_equal(unlink(name), 0);
  assert_int_equal(symlink(path, name), 0);
  assert_int_equal(put(path, "two"), 0);
  assert_int_equal(count_files(), 2);
  expect_content(path, "two");
  if (geteuid() != 0) return;
  assert_int_equal(unlink(name), 0);
  make_shared_name(NULL);
  assert_int_equal(chown(name, 1, 1), 0);
  assert_int_equal(put(path, "three"), 0);
  assert_int_equal(count_files(), 2);
  expect_content(path, "three");
}

static void test_file_that_can_be_given_no_name_is_copied(void **state) {
  (void)state;
  hp_sink_faults.link_errno = EPERM; /* a seccomp filter; without /proc it is ENOENT */
  assert_int_equal(put(path, "profile"), 0);
  expect_content(path, "profile");
  hp_sink_faults = (struct hp_sink_faults){0};
  assert_int_equal(put(path, "the next"), 0);
  expect_content(path, "the next");
  assert_int_equal(count_files(), 1);
}

static void test_path_without_a_directory_is_in_the_current_one(void **state) {
  (void)state;
  char old[4096];
  assert_non_null(getcwd(old, sizeof old));
  assert_int_equal(chdir(directory), 0);
  assert_int_equal(put("plain", "profile"), 0);
  expect_content("plain", "profile");
  assert_int_equal(chdir(old), 0);
}

static void test_full_file_system_is_reported_and_left_clean(void **state) {
  (void)state;
  if (mount("tmpfs", directory, "tmpfs", 0, "size=16k") != 0) skip(); /* only root can */
  char block[8192];
  memset(block, 'x', sizeof block);
  int status = hp_file_sink_open(&sink, path);
  for (int i = 0; status == 0 && i < 16; i++) status = sink.base.write(&sink.base, block, sizeof block);
  hp_file_sink_abort(&sink);
  unsigned left = count_files();
  int retried = put(path, "small");
  unsigned written = count_files();
  assert_int_equal(umount(directory), 0);
  assert_int_equal(status, -ENOSPC);
  assert_int_equal(left, 0);
  assert_int_equal(retried, 0);
  assert_int_equal(written, 1);
}

static void test_read_only_directory_is_an_error(void **state) {
  (void)state;
  if (geteuid() == 0) skip();
  assert_int_equal(chmod(directory, 0500), 0);
  assert_int_equal(put(path, "profile"), -EACCES);
  assert_int_equal(chmod(directory, 0700), 0);
}

/* Each where the file has no name until it is whole, and where it has one from the start. */
#define BOTH_WAYS(test) \
  cmocka_unit_test_setup_teardown(test, setup, teardown), cmocka_unit_test_setup_teardown(test, setup_named, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH_WAYS(test_mode_is_0600_whatever_the_umask),
      BOTH_WAYS(test_link_to_a_descriptor_is_an_error_and_stays_also_where_that_is_a_file),
      BOTH_WAYS(test_file_appears_whole_with_mode_0600),
      BOTH_WAYS(test_existing_file_is_replaced_never_appended_to),
      BOTH_WAYS(test_symbolic_link_at_the_name_is_replaced_not_followed),
      BOTH_WAYS(test_directory_at_the_name_is_an_error_and_stays),
      BOTH_WAYS(test_pipe_or_link_to_a_device_is_an_error_and_stays),
      BOTH_WAYS(test_device_is_written_to_and_stays),
      BOTH_WAYS(test_missing_directory_is_an_error),
      BOTH_WAYS(test_directory_removed_meanwhile_is_an_error_and_the_next_one_works),
      BOTH_WAYS(test_names_too_long_are_said_to_be),
      BOTH_WAYS(test_abort_leaves_nothing),
      BOTH_WAYS(test_failures_leave_nothing_and_are_reported),
      BOTH_WAYS(test_short_interrupted_and_delayed_writes_go_on),
      BOTH_WAYS(test_descriptor_that_became_another_file_is_left_alone),
      BOTH_WAYS(test_forked_child_leaves_the_file_to_its_parent),
      BOTH_WAYS(test_two_sinks_at_once_have_names_of_their_own),
      cmocka_unit_test_setup_teardown(test_file_of_a_killed_process_is_removed_by_the_next, setup, teardown),
      BOTH_WAYS(test_file_of_a_living_process_is_left_alone),
      BOTH_WAYS(test_somebody_elses_file_of_the_shared_name_is_left_alone),
      BOTH_WAYS(test_file_that_can_be_given_no_name_is_copied),
      BOTH_WAYS(test_path_without_a_directory_is_in_the_current_one),
      BOTH_WAYS(test_full_file_system_is_reported_and_left_clean),
      BOTH_WAYS(test_read_only_directory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
