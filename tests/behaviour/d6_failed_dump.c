/* SPDX-License-Identifier: MIT
 * D6: a failure anywhere leaves no file, is counted and logged once with its context, harms nobody, and the next dump works. */
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "behaviour.h"

static int files_in(const char *folder) {
  DIR *d = opendir(folder);
  if (d == NULL) return -1;
  int n = 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(d);
  return n;
}

NOINLINE static void *many_stacks(int bits, int n) {
  void *volatile p;
  if (n == 0) {
    p = malloc(8);
  } else if (bits & 1) {
    p = many_stacks(bits >> 1, n - 1);
  } else {
    p = many_stacks(bits >> 1, n - 1);
  }
  return p;
}

int main(int argc, char **argv) {
  (void)argc;
  char folder[4096], path[4200];
  for (int i = 0; i < 4096; i++) many_stacks(i, 12);
  snprintf(folder, sizeof folder, "%s/fail", argv[1]);
  mkdir(folder, 0700);
  snprintf(path, sizeof path, "%s/x.pb.gz", folder);
  uint64_t failed = stats_now().dumps_failed;
  CHECK_EQUAL(failed, 0);
  for (unsigned k = 1; k <= 3; k++) { /* the k-th piece of the file */
    heapprof_test_fail_output(k, ENOSPC, 0, 0);
    int result = heapprof_dump(path);
    heapprof_test_fail_output(0, 0, 0, 0);
    if (result == 0) break; /* the file is written in fewer pieces */
    CHECK_EQUAL(result, -ENOSPC);
    CHECK_EQUAL(stats_now().dumps_failed, ++failed);
    CHECK_EQUAL(files_in(folder), 0);
  }
  CHECK(failed >= 1, "no write failed");
  unlink(path);
  heapprof_test_fail_output(0, 0, EACCES, 0);
  CHECK_EQUAL(heapprof_dump(path), -EACCES);
  heapprof_test_fail_output(0, 0, 0, EROFS);
  CHECK_EQUAL(heapprof_dump(path), -EROFS);
  heapprof_test_fail_output(0, 0, 0, 0);
  CHECK_EQUAL(files_in(folder), 0);

  struct rlimit limit, tiny;
  getrlimit(RLIMIT_FSIZE, &limit);
  tiny = limit;
  tiny.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &tiny);
  CHECK_EQUAL(heapprof_dump(path), -EFBIG); /* and no SIGXFSZ has ended us */
  setrlimit(RLIMIT_FSIZE, &limit);
  CHECK_EQUAL(files_in(folder), 0);

  rmdir(folder);
  CHECK_EQUAL(heapprof_dump(path), -ENOENT);
  CHECK_EQUAL(files_in(folder), -1); /* it is not made again */
  CHECK_EQUAL(stats_now().dumps_failed, failed + 4);
  mkdir(folder, 0700);
  uint64_t good = stats_now().dumps;
  CHECK_EQUAL(heapprof_dump(path), 0);
  CHECK_EQUAL(stats_now().dumps, good + 1);
  CHECK_EQUAL(files_in(folder), 1);
  return 0;
}
