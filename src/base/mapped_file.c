/* SPDX-License-Identifier: MIT
 * mapped_file.c - see mapped_file.h. */
#include "mapped_file.h"

#include <errno.h>
#include <stdbool.h>

#include "sys.h"

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

long hp_mapped_file(uintptr_t address, char *to, size_t capacity) {
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
