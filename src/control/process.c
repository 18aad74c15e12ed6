/* SPDX-License-Identifier: MIT
 * process.c - see process.h. */
#include "process.h"

#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "sys.h"

struct hp_process hp_process;

static char directory[HP_PROCESS_PATH_MAX];
static char executable[HP_PROCESS_PATH_MAX];

static void look_for_executable(void) {
  static const char deleted[] = " (deleted)";
  long n = hp_sys_readlink("/proc/self/exe", executable, sizeof executable - 1);
  if (n <= 0) { /* no /proc: the name the kernel was given */
    const char *name = (const char *)getauxval(AT_EXECFN);
    n = name == NULL ? 0 : (long)strnlen(name, sizeof executable - 1);
    if (n > 0) memcpy(executable, name, (size_t)n);
  }
  executable[n] = 0;
  size_t cut = sizeof deleted - 1;
  if ((size_t)n > cut && strcmp(executable + n - cut, deleted) == 0) executable[(size_t)n - cut] = 0;
  const char *slash = strrchr(executable, '/');
  hp_process.executable = executable;
  hp_process.executable_name = slash == NULL ? executable : slash + 1;
  if (hp_process.executable_name[0] == 0) hp_process.executable_name = "unknown";
}

void hp_process_look(void) {
  long n = hp_sys_getcwd(directory, sizeof directory);
  /* "(unreachable)/..." is what a directory outside the root is called. */
  hp_process.directory = n > 0 && directory[0] == '/' ? directory : NULL;
  look_for_executable();
  hp_process.pid = hp_sys_getpid();
  hp_process.start_nanos = hp_process_wall_nanos();
}

static int64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
int64_t hp_process_wall_nanos(void) { return read_clock(CLOCK_REALTIME); }
int64_t hp_process_coarse_nanos(void) { return read_clock(CLOCK_MONOTONIC_COARSE); }
int64_t hp_process_exact_nanos(void) { return read_clock(CLOCK_MONOTONIC); }
