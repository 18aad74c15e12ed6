/* SPDX-License-Identifier: MIT
 * byte_source.h - the raw bytes of a profile: from a descriptor or from memory, gunzipped if they are gzip.
 */
#ifndef HP_BYTE_SOURCE_H
#define HP_BYTE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "cli_error.h"

struct hp_byte_source {
  const char *name; /* for errors */
  int fd;           /* -1: all input is in `memory` */
  const unsigned char *memory;
  size_t memory_left;
  unsigned char *buffer; /* input not yet given out, when fd is used */
  size_t start, end;
  bool at_end; /* of the descriptor or memory */
  bool decided, is_gzip, in_member;
  z_stream inflater;
  uint64_t produced_bytes;
  uint64_t limit_bytes;
};

/* Starts; the descriptor stays the caller's. */
void hp_byte_source_open(struct hp_byte_source *source, const char *name, int fd, const void *memory, size_t length_bytes,
                         uint64_t limit_bytes);

/* Up to `room` bytes into out; *got 0: the end. Returns 0, or -1 and one sentence: read error, damaged gzip, limit passed. */
int hp_byte_source_read(struct hp_byte_source *source, void *out, size_t room, size_t *got, struct hp_error *error);

void hp_byte_source_close(struct hp_byte_source *source);

#endif
