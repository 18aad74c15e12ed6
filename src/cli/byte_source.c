/* SPDX-License-Identifier: MIT
 * byte_source.c - see byte_source.h. A gzip file may have several members; what follows the last must be nothing.
 */
#include "byte_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_memory.h"
#include "units.h"

enum { INPUT_BYTES = 64 * 1024 };

void hp_byte_source_open(struct hp_byte_source *source, const char *name, int fd, const void *memory, size_t length_bytes,
                         uint64_t limit_bytes) {
  memset(source, 0, sizeof *source);
  source->name = name;
  source->fd = fd;
  source->memory = memory;
  source->memory_left = length_bytes;
  source->limit_bytes = limit_bytes;
  source->buffer = hp_alloc(INPUT_BYTES);
}

void hp_byte_source_close(struct hp_byte_source *source) {
  if (source->is_gzip) inflateEnd(&source->inflater);
  free(source->buffer);
  source->buffer = NULL;
}

/* More input behind what is left of it. */
static int fill(struct hp_byte_source *source, struct hp_error *error) {
  if (source->start > 0) {
    memmove(source->buffer, source->buffer + source->start, source->end - source->start);
    source->end -= source->start;
    source->start = 0;
  }
  size_t room = INPUT_BYTES - source->end;
  if (source->fd < 0) {
    size_t count = source->memory_left < room ? source->memory_left : room;
    if (count != 0) memcpy(source->buffer + source->end, source->memory, count);
    if (count != 0) source->memory += count;
    source->memory_left -= count;
    source->end += count;
    source->at_end = source->memory_left == 0;
    return 0;
  }
  ssize_t count;
  do count = read(source->fd, source->buffer + source->end, room);
  while (count < 0 && errno == EINTR);
  if (count < 0) return hp_error_set(error, "%s: cannot read: %s", source->name, strerror(errno));
  source->end += (size_t)count;
  source->at_end = count == 0;
  return 0;
}

/* The first two bytes say whether it is gzip. */
static int decide(struct hp_byte_source *source, struct hp_error *error) {
  while (source->end - source->start < 2 && !source->at_end)
    if (fill(source, error) != 0) return -1;
  const unsigned char *byte = source->buffer + source->start;
  if (source->end - source->start >= 2 && byte[0] == 0x1f && byte[1] == 0x8b) {
    if (inflateInit2(&source->inflater, 15 + 16) != Z_OK)
      return hp_error_set(error, "%s: zlib does not start", source->name);
    source->is_gzip = true;
    source->in_member = true;
  }
  source->decided = true;
  return 0;
}

static int count_bytes(struct hp_byte_source *source, size_t count, struct hp_error *error) {
  source->produced_bytes += count;
  if (source->produced_bytes <= source->limit_bytes) return 0;
  char limit[HP_UNITS_MAX];
  return hp_error_set(error, "%s: more than %s of profile (HEAPPROF_READ_LIMIT raises the limit)", source->name,
                      hp_units_format((int64_t)source->limit_bytes, "bytes", limit));
}

static int read_plain(struct hp_byte_source *source, void *out, size_t room, size_t *got, struct hp_error *error) {
  while (source->start == source->end && !source->at_end)
    if (fill(source, error) != 0) return -1;
  size_t count = source->end - source->start;
  if (count > room) count = room;
  memcpy(out, source->buffer + source->start, count);
  source->start += count;
  *got = count;
  return count_bytes(source, count, error);
}

/* Between two members: the end of the input, or the header of the next. */
static int next_member(struct hp_byte_source *source, struct hp_error *error) {
  while (source->end - source->start < 2 && !source->at_end)
    if (fill(source, error) != 0) return -1;
  if (source->start == source->end) return 0;
  if (inflateReset(&source->inflater) != Z_OK) return hp_error_set(error, "%s: zlib does not start", source->name);
  source->in_member = true;
  return 0;
}

static int read_gzip(struct hp_byte_source *source, void *out, size_t room, size_t *got, struct hp_error *error) {
  source->inflater.next_out = out;
  source->inflater.avail_out = (uInt)room;
  while (source->inflater.avail_out == room) {
    if (!source->in_member) {
      if (next_member(source, error) != 0) return -1;
      if (!source->in_member) break;
    }
    if (source->start == source->end && !source->at_end && fill(source, error) != 0) return -1;
    if (source->start == source->end && source->at_end)
      return hp_error_set(error, "%s: the gzip data ends too early", source->name);
    source->inflater.next_in = source->buffer + source->start;
    source->inflater.avail_in = (uInt)(source->end - source->start);
    int result = inflate(&source->inflater, Z_NO_FLUSH);
    source->start = source->end - source->inflater.avail_in;
    if (result == Z_STREAM_END)
      source->in_member = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
      return hp_error_set(error, "%s: damaged gzip data (%s)", source->name,
                          source->inflater.msg != NULL ? source->inflater.msg : "zlib");
  }
  *got = room - source->inflater.avail_out;
  return count_bytes(source, *got, error);
}

int hp_byte_source_read(struct hp_byte_source *source, void *out, size_t room, size_t *got, struct hp_error *error) {
  if (!source->decided && decide(source, error) != 0) return -1;
  return source->is_gzip ? read_gzip(source, out, room, got, error) : read_plain(source, out, room, got, error);
}
