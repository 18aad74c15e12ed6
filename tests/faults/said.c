/* SPDX-License-Identifier: MIT
 * said.c - claim: what is wrong with the settings or the place is said, where it was asked for. The program sets the stage and execs
 * itself.
 *   said gone    started in a folder that is gone: each dump says why there is none, and the program goes on
 *   said deep    the same in a folder whose name is longer than any path may be
 *   said thread  with a thread the library's own says it, which has a table of descriptors for itself
 *   said none    with a limit of no descriptor at all, as sandboxes set it
 *   said log     a log file with placeholders has the complaint about a template and the line of a dump; the error output has nothing */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heapprof.h"

static void use_heap(void) {
  for (int i = 1; i < 300; i++) free(memset(malloc((size_t)i), 1, (size_t)i));
}

static int run_again(char **argv, const char *stage) {
  static char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return 1;
  execl(self, argv[0], argv[1], stage, NULL);
  return 2;
}

/* 25 folders of 200 characters. */
static int go_deep(void) {
  char name[201] = {0};
  memset(name, 'd', sizeof name - 1);
  for (int i = 0; i < 25; i++)
    if (mkdir(name, 0700) != 0 || chdir(name) != 0) return -1;
  return 0;
}

static int set_stage(char **argv, const char *work) {
  static char text[4096];
  bool is_deep = strcmp(argv[1], "deep") == 0;
  if (is_deep || strcmp(argv[1], "gone") == 0) {
    if (chdir(work) != 0 || mkdir("gone", 0700) != 0 || chdir("gone") != 0) return 3;
    if (is_deep ? go_deep() != 0 : rmdir("../gone") != 0) return 3;
    setenv("HEAPPROF_OUT", "relative.pb.gz", 1);
    setenv("HEAPPROF_EXIT_DUMP", "0", 1);
  } else if (strcmp(argv[1], "none") == 0) {
    setenv("HEAPPROF_EXIT_DUMP", "0", 1);
  } else if (strcmp(argv[1], "thread") == 0) {
    setenv("HEAPPROF_OUT", "/nonexistent/x.pb.gz", 1);
    setenv("HEAPPROF_EXIT_DUMP", "0", 1);
  } else {
    snprintf(text, sizeof text, "%s/log.%%e.%%p", work);
    setenv("HEAPPROF_LOG_FILE", text, 1);
    setenv("HEAPPROF_LOG", "info", 1);
    snprintf(text, sizeof text, "%s/%%q.%%p.pb.gz", work);
    setenv("HEAPPROF_OUT", text, 1);
  }
  return run_again(argv, "staged");
}

/* The log has exactly these two lines so far. */
static int look_at_log(const char *work, const char *self) {
  static char path[4096], log[8192], want[3][4096];
  const char *name = strrchr(self, '/') == NULL ? self : strrchr(self, '/') + 1;
  snprintf(path, sizeof path, "%s/log.%s.%d", work, name, getpid());
  FILE *file = fopen(path, "r");
  if (file == NULL) return 4;
  size_t n = fread(log, 1, sizeof log - 1, file);
  fclose(file);
  log[n] = 0;
  snprintf(want[0], sizeof want[0], "heapprof[%d]: warn: HEAPPROF_OUT: %%q is no placeholder", getpid());
  snprintf(want[1], sizeof want[1], "\nheapprof[%d]: info: heap profile written: ", getpid());
  snprintf(want[2], sizeof want[2], "/%%q.%d.pb.gz (signal, ", getpid());
  if (strstr(log, want[0]) != log) return 5;
  if (strstr(log, want[1]) == NULL || strstr(log, want[2]) == NULL) return 6;
  return log[n - 1] == '\n' ? 0 : 7;
}

static void *wait_for_failure(void *unused) {
  struct heapprof_stats stats = {0};
  while (heapprof_stats(&stats) == 0 && stats.dumps_failed == 0) usleep(1000);
  usleep(20000); /* it is said a little later */
  return unused;
}

static int dump_with_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_failure, NULL) != 0) return 9;
  kill(getpid(), SIGUSR2);
  return pthread_join(thread, NULL) == 0 ? 0 : 10;
}

int main(int argc, char **argv) {
  const char *work = getenv("HEAPPROF_WORK");
  if (argc < 2 || work == NULL) return 8;
  if (argc == 2) return set_stage(argv, work);
  use_heap();
  if (strcmp(argv[1], "thread") == 0) return dump_with_thread();
  const struct rlimit none = {0, 0};
  if (strcmp(argv[1], "none") == 0 && setrlimit(RLIMIT_NOFILE, &none) != 0) return 11;
  raise(SIGUSR2);
  use_heap();
  return strcmp(argv[1], "log") == 0 ? look_at_log(work, argv[0]) : 0;
}
