/* SPDX-License-Identifier: MIT
 * process.c - see process.h. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

#include "sys.h"

struct hp_process hp_process;

static char directory[HP_PROCESS_PATH_MAX];
static char executable[HP_PROCESS_PATH_MAX];

static bool is_executable_known; /* atomic */

/* A line of /proc/self/maps is read byte by byte: "START-END PERM OFFSET DEVICE INODE   PATH\n". */
struct maps_line {
  uintptr_t number[2]; /* START, END */
  int at;              /* which of them; 2: behind them */
  bool is_path;
  size_t path_length;
};

/* Is it the end of a line whose range has `address`? Its path is in `to` then. */
static bool take_maps_byte(struct maps_line *line, char c, uintptr_t address, char *to, size_t capacity) {
  if (c == '\n') {
    if (line->number[0] <= address && address < line->number[1] && line->is_path) return true;
    *line = (struct maps_line){0};
  } else if (line->at < 2) {
    if (c == '-' || c == ' ') {
      line->at++;
    } else {
      line->number[line->at] = line->number[line->at] * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
  } else if (line->number[0] <= address && address < line->number[1]) {
    line->is_path = line->is_path || c == '/';
    if (line->is_path && line->path_length < capacity) to[line->path_length++] = c;
  }
  return false;
}

/* The file that is mapped at an address, into `to`, without a zero; its length, or 0. */
static long find_mapped_file(uintptr_t address, char *to, size_t capacity) {
  char bytes[512];
  struct maps_line line = {0};
  int fd = hp_sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return 0;
  bool is_found = false;
  long n = 0;
  while (!is_found && ((n = hp_sys_read(fd, bytes, sizeof bytes)) > 0 || n == -EINTR)) {
    for (long i = 0; i < n && !is_found; i++) is_found = take_maps_byte(&line, bytes[i], address, to, capacity);
  }
  hp_sys_close(fd);
  return is_found ? (long)line.path_length : 0;
}

/* The program, also where the kernel was told to run the loader, and the loader to run it ("ld.so ./app", as bundles do): then
 * there is no interpreter, and the loader has set right where the program's headers are. */
static long look_for_executable(char *to, size_t capacity) {
  long n = getauxval(AT_BASE) == 0 ? find_mapped_file(getauxval(AT_PHDR), to, capacity) : 0;
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
