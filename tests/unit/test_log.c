/* SPDX-License-Identifier: MIT
 * test_log.c - one line to stderr: levels, control characters, a full or closed pipe, a data file in stderr's place. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"
#include "unit_test.h"

static int saved_stderr, ends[2];

static int with_pipe(void **state) {
  (void)state;
  saved_stderr = dup(2);
  if (pipe2(ends, O_NONBLOCK) != 0) return 1;
  dup2(ends[1], 2);
  hp_log_init();
  hp_log_configure(HP_LOG_WARN, NULL);
  return 0;
}
static int without_pipe(void **state) {
  (void)state;
  dup2(saved_stderr, 2);
  close(saved_stderr);
  close(ends[0]);
  close(ends[1]);
  return 0;
}
static const char *read_pipe(void) {
  static char text[2000];
  ssize_t n = read(ends[0], text, sizeof text - 1);
  text[n < 0 ? 0 : n] = 0;
  return text;
}

static void a_line_has_pid_and_level_and_errno_stays(void **state) {
  (void)state;
  char want[200];
  errno = EXDEV;
  hp_log(HP_LOG_WARN, "%s=%d", "x", 5);
  assert_int_equal(errno, EXDEV);
  snprintf(want, sizeof want, "heapprof[%d]: warn: x=5\n", getpid());
  assert_string_equal(read_pipe(), want);
  hp_log(HP_LOG_INFO, "quiet");
  assert_string_equal(read_pipe(), "");
  hp_log_configure(HP_LOG_OFF, NULL);
  hp_log(HP_LOG_ERROR, "silent");
  assert_string_equal(read_pipe(), "");
}

static void a_value_cannot_break_the_line(void **state) {
  (void)state;
  char longest[3000];
  memset(longest, 'a', sizeof longest);
  longest[sizeof longest - 1] = 0;
  hp_log(HP_LOG_ERROR, "evil\nheapprof[1]: \033[31mred");
  const char *text = read_pipe();
  assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
  assert_null(strchr(text, '\033'));
  hp_log(HP_LOG_ERROR, "%s", longest);
  text = read_pipe();
  assert_true(strlen(text) < 600);
  assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void a_full_pipe_loses_the_line_and_a_closed_one_raises_nothing(void **state) {
  (void)state;
  char filler[65536] = {0};
  while (write(ends[1], filler, sizeof filler) > 0) {
  }
  fcntl(ends[1], F_SETFL, 0); /* a blocking pipe: to wait here would be for ever */
  hp_log(HP_LOG_ERROR, "lost");
  close(ends[0]);
  signal(SIGPIPE, SIG_DFL);
  hp_log(HP_LOG_ERROR, "nobody reads");
  assert_int_equal(pipe(ends), 0);
}

static void a_data_file_in_stderrs_place_stays_as_it_is(void **state) {
  (void)state;
  char name[] = "/tmp/test_log.XXXXXX";
  int fd = mkstemp(name);
  dup2(fd, 2);
  hp_log(HP_LOG_ERROR, "not into the data");
  assert_int_equal(lseek(fd, 0, SEEK_END), 0);
  hp_log_configure(HP_LOG_WARN, name); /* but by its name it is a log */
  hp_log(HP_LOG_ERROR, "into the log");
  assert_true(lseek(fd, 0, SEEK_END) > 20);
  close(fd);
  unlink(name);
}

/* A folder that is not there, or that a daemon may no longer write to: else errors would be lost in silence. */
static void without_its_file_what_is_wrong_goes_to_stderr_and_that_is_said_once(void **state) {
  (void)state;
  char want[400];
  hp_log_configure(HP_LOG_INFO, "/nonexistent/log");
  hp_log(HP_LOG_INFO, "no news");
  snprintf(
      want, sizeof want,
      "heapprof[%d]: warn: HEAPPROF_LOG_FILE: /nonexistent/log: No such file or directory; errors and warnings come here\n",
      getpid());
  assert_string_equal(read_pipe(), want);
  hp_log(HP_LOG_ERROR, "wrong");
  hp_log(HP_LOG_INFO, "no news");
  snprintf(want, sizeof want, "heapprof[%d]: error: wrong\n", getpid());
  assert_string_equal(read_pipe(), want);
  hp_log_configure(HP_LOG_OFF, "/nonexistent/log");
  hp_log(HP_LOG_ERROR, "silent");
  assert_string_equal(read_pipe(), "");
}

/* As in a sandbox, or with `ulimit -f`: the signal's default ends the program. */
static void at_the_limit_of_file_sizes_a_line_is_lost_and_raises_nothing(void **state) {
  (void)state;
  char name[] = "/tmp/test_log.XXXXXX";
  int fd = mkstemp(name);
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  hp_log_configure(HP_LOG_WARN, name);
  signal(SIGXFSZ, SIG_DFL);
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, before.rlim_max});
  hp_log(HP_LOG_ERROR, "no room");
  setrlimit(RLIMIT_FSIZE, &before);
  assert_int_equal(lseek(fd, 0, SEEK_END), 0);
  hp_log(HP_LOG_ERROR, "room");
  assert_true(lseek(fd, 0, SEEK_END) > 0);
  close(fd);
  unlink(name);
}

/* The C library's, but for those that mean something of ours. */
static void errors_have_the_texts_of_the_c_library(void **state) {
  (void)state;
  static const struct {
    int error;
    const char *text;
  } ours[] = {{ENXIO, "Not a file"},
              {EBADF, "the program closed the file"},
              {ENOMEM, "Out of memory (the system's, or HEAPPROF_MAX_MEMORY)"},
              {EBADMSG, "the profile failed its own check"}};
  int known = 0;
  for (int error = 1; error < 200; error++) {
    const char *text = hp_log_errno_text(error), *want = strerror(error);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
      if (error == ours[i].error) want = ours[i].text;
    }
    if (text != NULL) assert_string_equal(text, want);
    assert_ptr_equal(text, hp_log_errno_text(-error));
    known += text != NULL;
  }
  assert_int_equal(known, 25);
  assert_null(hp_log_errno_text(0));
  assert_null(hp_log_errno_text(4000));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_line_has_pid_and_level_and_errno_stays, with_pipe, without_pipe),
      cmocka_unit_test_setup_teardown(a_value_cannot_break_the_line, with_pipe, without_pipe),
      cmocka_unit_test_setup_teardown(a_full_pipe_loses_the_line_and_a_closed_one_raises_nothing, with_pipe, without_pipe),
      cmocka_unit_test_setup_teardown(a_data_file_in_stderrs_place_stays_as_it_is, with_pipe, without_pipe),
      cmocka_unit_test_setup_teardown(without_its_file_what_is_wrong_goes_to_stderr_and_that_is_said_once, with_pipe,
                                      without_pipe),
      cmocka_unit_test_setup_teardown(at_the_limit_of_file_sizes_a_line_is_lost_and_raises_nothing, with_pipe, without_pipe),
      cmocka_unit_test(errors_have_the_texts_of_the_c_library)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
