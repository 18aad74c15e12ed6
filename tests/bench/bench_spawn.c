/* SPDX-License-Identifier: MIT
 * bench_spawn.c - runs a command N times and reports the CPU time of the children: exec + exit of a trivial program, and the
 * launcher of the real programs. It is not preloaded itself; the children get the variables named here.
 *   bench_spawn [--count=N] [NAME=VALUE...] -- COMMAND [ARGUMENT...]
 * The children's output goes to /dev/null, errors stay visible. Status 1 when one of them fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "bench_util.h"

static uint64_t children_cpu_ns(void) {
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * 1000000000u +
         ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000u;
}

/* environ with the assignments of argv[first..last) put in place of variables of the same name. Never freed. */
static char **child_environment(char **argv, int first, int last) {
  size_t count = 0;
  while (environ[count] != NULL) count++;
  char **result = calloc(count + (size_t)(last - first) + 1, sizeof *result);
  if (result == NULL) bench_fail("calloc");
  size_t kept = 0;
  for (int i = first; i < last; i++) {
    if (strchr(argv[i], '=') != NULL && argv[i][0] != '-') result[kept++] = argv[i];
  }
  size_t added = kept;
  for (size_t i = 0; i < count; i++) {
    int replaced = 0;
    for (size_t k = 0; k < added; k++) {
      size_t length = (size_t)(strchr(result[k], '=') - result[k]) + 1;
      replaced |= strncmp(environ[i], result[k], length) == 0;
    }
    if (!replaced) result[kept++] = environ[i];
  }
  return result;
}

static void run_once(char **command, char **environment, posix_spawn_file_actions_t *actions) {
  pid_t pid;
  int status;
  errno = posix_spawnp(&pid, command[0], actions, NULL, command, environment);
  if (errno != 0) bench_fail(command[0]);
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) bench_fail("waitpid");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fprintf(stderr, "%s: status %#x\n", command[0], (unsigned)status);
    exit(1);
  }
}

int main(int argc, char **argv) {
  int separator = 1;
  while (separator < argc && strcmp(argv[separator], "--") != 0) separator++;
  if (separator + 1 >= argc) {
    fprintf(stderr, "usage: bench_spawn [--count=N] [NAME=VALUE...] -- COMMAND [ARGUMENT...]\n");
    return 2;
  }
  uint64_t count = bench_option(separator, argv, "count", 1);
  char **environment = child_environment(argv, 1, separator);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  uint64_t wall_start_ns = bench_wall_ns(), own_start_ns = bench_cpu_ns();
  for (uint64_t i = 0; i < count; i++) run_once(argv + separator + 1, environment, &actions);
  double cpu_ns = (double)(children_cpu_ns() + bench_cpu_ns() - own_start_ns),
         wall_ns = (double)(bench_wall_ns() - wall_start_ns);
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  printf("bench name=spawn count=%lu cpu_ns=%.1f mean_cpu_ns=%.1f wall_ns=%.1f rss_max_kib=%ld\n", count,
         cpu_ns / (double)count, cpu_ns / (double)count, wall_ns / (double)count, usage.ru_maxrss);
  return 0;
}
