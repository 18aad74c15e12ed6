/* SPDX-License-Identifier: MIT
 * path_clean.c - see path_clean.h.
 */
#include "path_clean.h"

#include <stdbool.h>
#include <string.h>

void hp_path_clean(char *path) {
  bool is_rooted = path[0] == '/';
  char *to = path + is_rooted, *floor = to;
  for (const char *from = path; *from != '\0';) {
    size_t length = strcspn(from, "/");
    if (length == 0 || (length == 1 && from[0] == '.')) {
      /* nothing */
    } else if (length == 2 && from[0] == '.' && from[1] == '.' && to > floor) {
      while (to > floor && *--to != '/') {
      }
    } else if (!(length == 2 && from[0] == '.' && from[1] == '.' && is_rooted)) {
      bool is_up = length == 2 && from[0] == '.' && from[1] == '.';
      if (to > path + is_rooted) *to++ = '/';
      memmove(to, from, length);
      to += length;
      if (is_up) floor = to;
    }
    from += length;
    from += *from == '/';
  }
  *to = '\0';
}

const char *hp_path_base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}
