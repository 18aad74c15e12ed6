/* SPDX-License-Identifier: MIT
 * process.c - see process.h. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

#include "mapped_file.h"
#include "sys.h"

struct hp_process hp_process;

static char directory[HP_PROCESS_PATH_MAX];
static char executable[HP_PROCESS_PATH_MAX];

static bool is_executable_known; /* atomic */

/* The program, also where the kernel was told to run the loader, and the loader to run it ("ld.so ./app", as bundles do): then
 * there is no interpreter, and the loader has set right where the program's headers are. */
static long look_for_executable(char *to, size_t capacity) {
  long n = getauxval(AT_BASE) == 0 ? hp_mapped_file(getauxval(AT_PHDR), to, capacity) : 0;
  return n > 0 ? n : hp_sys_readlink("/proc/self/exe", to, capacity);
}

const char *hp_process_executable(void) {
  static const char deleted[] = " (deleted)";
  if (hp_load_acquire(&is_executable_known)) return executable;
  long n = look_for_executable(executable, sizeof executable - 1);
  if (n <= 0) { /* no /proc: the name the kernel was given */
    const char *name = (const char *)getauxval(AT_EXECFN);
    n = name == NULL ? 0 : (long)strnlen(name, sizeof executable - 1);
    if (n > 0) memcpy(executable, name, (size_t)n);
  }
  executable[n] = 0;
  size_t cut = sizeof deleted - 1;
  if ((size_t)n > cut && strcmp(executable + n - cut, deleted) == 0) executable[(size_t)n - cut] = 0;
  hp_store_release(&is_executable_known, true);
  return executable;
}

const char *hp_process_executable_name(void) {
  const char *slash = strrchr(hp_process_executable(), '/');
  const char *name = slash == NULL ? executable : slash + 1;
  return name[0] == 0 ? "unknown" : name;
}

static void look_for_directory(void) {
  long n = hp_sys_getcwd(directory, sizeof directory);
  /* "(unreachable)/..." is what a directory outside the root is called. */
  hp_process.directory = n > 0 && directory[0] == '/' ? directory : NULL;
}

void hp_process_look(void) {
  look_for_directory();
  hp_process.pid = hp_sys_getpid();
  hp_process.start = hp_process.alloc_start = hp_moment_now();
}

int64_t hp_process_coarse_nanos(void) { return hp_clock_nanos(CLOCK_MONOTONIC_COARSE); }
int64_t hp_process_exact_nanos(void) { return hp_clock_nanos(CLOCK_MONOTONIC); }
