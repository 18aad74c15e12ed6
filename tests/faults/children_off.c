/* SPDX-License-Identifier: MIT
 * children_off.c - claim: with HEAPPROF_CHILDREN=0 neither a forked nor an exec'd child is profiled, and all calls tell it so; an exec in
 * the same process stays profiled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heapprof.h"

static void use_heap(void) {
  for (size_t i = 1; i < 300; i++) free(memset(malloc(i), 1, i));
}

/* 0: every call says that this process is not profiled. */
static int look_at_calls(void) {
  static char block[16];
  use_heap();
  if (heapprof_active() != 0) return 11;
  if (heapprof_start() != -EPERM || heapprof_stop() != -EPERM || heapprof_set_sample_rate(1) != -EPERM) return 12;
  if (heapprof_dump(NULL) != -EPERM || heapprof_reset() != -EPERM) return 13;
  return heapprof_report_alloc(block, sizeof block) == -EPERM && heapprof_report_free(block) == -EPERM ? 0 : 14;
}

static int status_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 20;
  return WEXITSTATUS(status);
}

static int run_children(char **argv) {
  pid_t child = fork();
  if (child == 0) _exit(look_at_calls());
  int status = status_of(child);
  if (status != 0) return status;
  child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "child", NULL);
    _exit(21);
  }
  return status_of(child);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "child") == 0) return look_at_calls();
  use_heap();
  if (heapprof_active() != 1) return 1;
  int status = run_children(argv);
  if (status != 0 || argc > 1) return status;
  execl("/proc/self/exe", argv[0], "again", NULL);
  return 2;
}
