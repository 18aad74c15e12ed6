/* SPDX-License-Identifier: MIT
 * resident.c - see resident.h. */
#include "resident.h"

#include <string.h>
#include <sys/auxv.h>

#include "sys.h"

/* The beginning of a file of /proc/thread-self, 0-terminated. /proc/self is of the main thread: once that has left by pthread_exit
 * it counts nothing. */
static bool read_file(const char *path, const char *path_without_threads, char *text, size_t capacity) {
  int fd = hp_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) fd = hp_sys_open(path_without_threads, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  long n = hp_sys_read(fd, text, capacity - 1);
  hp_sys_close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

static bool read_number(const char **at, uint64_t *out) {
  while (**at == ' ' || **at == '\t') ++*at;
  if (**at < '0' || **at > '9') return false;
  for (*out = 0; **at >= '0' && **at <= '9'; ++*at) *out = *out * 10 + (uint64_t)(**at - '0');
  return true;
}

bool hp_resident_read(struct hp_resident *out) {
  char text[128];
  uint64_t pages[3] = {0}; /* size, resident, shared */
  const char *at = text;
  if (!read_file("/proc/thread-self/statm", "/proc/self/statm", text, sizeof text)) return false;
  for (unsigned i = 0; i < HP_ARRAY_LENGTH(pages); i++) {
    if (!read_number(&at, &pages[i])) return false;
  }
  uint64_t page_bytes = getauxval(AT_PAGESZ);
  out->file_bytes = pages[2] * page_bytes;
  out->anon_bytes = pages[1] > pages[2] ? (pages[1] - pages[2]) * page_bytes : 0;
  return true;
}

static bool find_number(const char *text, const char *line, uint64_t *out) {
  const char *at = strstr(text, line);
  if (at == NULL) return false;
  at += strlen(line);
  return read_number(&at, out);
}

bool hp_resident_read_threads(struct hp_resident_threads *out) {
  static char text[8192]; /* the line of groups may be long */
  uint64_t kilobytes;
  if (!read_file("/proc/thread-self/status", "/proc/self/status", text, sizeof text)) return false;
  if (!find_number(text, "\nVmStk:", &kilobytes) || !find_number(text, "\nThreads:", &out->count)) return false;
  out->main_stack_bytes = kilobytes * 1024;
  return true;
}
