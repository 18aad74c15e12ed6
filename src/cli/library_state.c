/* SPDX-License-Identifier: MIT
 * library_state.c - see library_state.h.
 */
#include "library_state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/published.h"
#include "cli_memory.h"

enum { DATA_BYTES_MAX = 16 << 20 };

static bool read_exactly(int fd, uint64_t address, void *to, size_t count) {
  return address <= INT64_MAX && pread(fd, to, count, (off_t)address) == (ssize_t)count;
}

/* A text of the process's; null: none there, or too long. */
static char *read_text(int fd, uint64_t address) {
  char text[HP_PUBLISHED_TEXT_MAX];
  if (address == 0 || address > INT64_MAX) return NULL;
  ssize_t count = pread(fd, text, sizeof text, (off_t)address);
  return count > 0 && memchr(text, '\0', (size_t)count) != NULL ? hp_strdup(text) : NULL;
}

static bool take(int fd, const struct hp_published *found, struct hp_library_state *out) {
  if (found->size_bytes < sizeof *found) return false;
  out->is_known = true;
  out->signal = found->signal;
  out->is_signal_lost = found->is_signal_lost != 0;
  out->out_template = read_text(fd, found->out_template);
  out->directory = read_text(fd, found->directory);
  return true;
}

/* A part of the library's writable data. */
static bool look_in(int fd, uint64_t start, uint64_t end, struct hp_library_state *out) {
  static const char magic[HP_PUBLISHED_MAGIC_BYTES] = HP_PUBLISHED_MAGIC;
  if (end <= start || end - start > DATA_BYTES_MAX) return false;
  size_t count = (size_t)(end - start);
  char *data = hp_alloc(count);
  bool is_found = false;
  if (read_exactly(fd, start, data, count)) {
    for (size_t at = 0; !is_found && at + sizeof(struct hp_published) <= count; at += HP_PUBLISHED_ALIGNMENT) {
      struct hp_published candidate;
      if (memcmp(data + at, magic, sizeof magic) != 0) continue;
      memcpy(&candidate, data + at, sizeof candidate);
      is_found = take(fd, &candidate, out);
    }
  }
  free(data);
  return is_found;
}

void hp_library_state_read(const char *folder, const char *maps, struct hp_library_state *out) {
  memset(out, 0, sizeof *out);
  char *path = hp_format("%s/mem", folder);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  free(path);
  if (fd < 0) return;
  for (const char *line = maps; line != NULL && *line != '\0';) {
    const char *end_of_line = strchr(line, '\n');
    size_t length = end_of_line != NULL ? (size_t)(end_of_line - line) : strlen(line);
    uint64_t start, end;
    char rights[5] = "";
    if (memmem(line, length, "/libheapprof.so", strlen("/libheapprof.so")) != NULL &&
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, rights) == 3 && rights[1] == 'w' &&
        look_in(fd, start, end, out))
      break;
    line = end_of_line != NULL ? end_of_line + 1 : NULL;
  }
  close(fd);
}

void hp_library_state_free(struct hp_library_state *state) {
  free(state->out_template);
  free(state->directory);
  memset(state, 0, sizeof *state);
}
