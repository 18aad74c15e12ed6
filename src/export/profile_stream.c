/* SPDX-License-Identifier: MIT
 * profile_stream.c - see profile_stream.h. Pieces gather in a block; a full block is checked, compressed and written, so
 * zlib and the checker are called a few dozen times a file. */
#include "profile_stream.h"

#include <errno.h>
#include <zlib.h>

enum {
  STREAM_OUT_BYTES = 32 * 1024,
  STREAM_LEVEL = 1,
  STREAM_GZIP_BITS = 16, /* added to the window's: gzip's header and checksum */
  STREAM_WINDOW_BITS = 15,
  STREAM_MEMORY_LEVEL = 8,
  /* A short-lived process leaves a few rows: zeroing 130 KiB of window and hash would be a third of its dump, and making Huffman
   * trees of its own for some hundred bytes a tenth. */
  STREAM_SMALL_ROWS = 16,
  STREAM_SMALL_WINDOW_BITS = 11,
  STREAM_SMALL_MEMORY_LEVEL = 3,
};

struct hp_profile_stream {
  struct hp_byte_sink *sink;
  int status;
  size_t used; /* of block */
  struct hp_pprof_check check;
  z_stream zlib;
  uint8_t block[HP_PIECE_BYTES_MAX];
  uint8_t out[STREAM_OUT_BYTES];
};

struct hp_profile_stream *hp_profile_stream_open(struct hp_arena *arena, struct hp_byte_sink *sink,
                                                 enum hp_profile_kind kind, size_t row_count) {
  struct hp_profile_stream *stream = hp_arena_alloc(arena, sizeof *stream);
  if (stream == NULL) return NULL;
  stream->sink = sink;
  hp_pprof_check_begin(&stream->check, kind, arena);
  stream->zlib.zalloc = hp_arena_zalloc;
  stream->zlib.zfree = hp_arena_zfree;
  stream->zlib.opaque = arena;
  bool is_small = row_count <= STREAM_SMALL_ROWS;
  int window_bits = is_small ? STREAM_SMALL_WINDOW_BITS : STREAM_WINDOW_BITS;
  int result =
      deflateInit2(&stream->zlib, STREAM_LEVEL, Z_DEFLATED, window_bits + STREAM_GZIP_BITS,
                   is_small ? STREAM_SMALL_MEMORY_LEVEL : STREAM_MEMORY_LEVEL, is_small ? Z_FIXED : Z_DEFAULT_STRATEGY);
  return result == Z_OK ? stream : NULL;
}

static int compress_block(struct hp_profile_stream *stream, int flush) {
  z_stream *zlib = &stream->zlib;
  zlib->next_in = stream->block;
  zlib->avail_in = (unsigned)stream->used;
  stream->used = 0;
  do {
    zlib->next_out = stream->out;
    zlib->avail_out = STREAM_OUT_BYTES;
    if (deflate(zlib, flush) == Z_STREAM_ERROR) return -EIO;
    size_t n = STREAM_OUT_BYTES - zlib->avail_out;
    int status = n == 0 ? 0 : stream->sink->write(stream->sink, stream->out, n);
    if (status != 0) return status;
  } while (zlib->avail_out == 0);
  return 0;
}

static int flush_block(struct hp_profile_stream *stream, int flush) {
  int status = hp_pprof_check_feed(&stream->check, stream->block, stream->used);
  if (status == 0 && flush == Z_FINISH) status = hp_pprof_check_end(&stream->check);
  if (status == 0) status = compress_block(stream, flush);
  stream->status = status;
  return status;
}

int hp_profile_stream_put_bounded(struct hp_profile_stream *stream, const Perftools__Profiles__Profile *piece,
                                  size_t bytes_max) {
  if (stream->status != 0) return stream->status;
  if (bytes_max > sizeof stream->block) return stream->status = -EMSGSIZE;
  if (bytes_max > sizeof stream->block - stream->used && flush_block(stream, Z_NO_FLUSH) != 0) return stream->status;
  stream->used += protobuf_c_message_pack(&piece->base, stream->block + stream->used);
  return 0;
}

int hp_profile_stream_put(struct hp_profile_stream *stream, const Perftools__Profiles__Profile *piece) {
  return hp_profile_stream_put_bounded(stream, piece, protobuf_c_message_get_packed_size(&piece->base));
}

int hp_profile_stream_close(struct hp_profile_stream *stream) {
  if (stream->status != 0) return stream->status;
  int status = flush_block(stream, Z_FINISH);
  deflateEnd(&stream->zlib);
  return status;
}

const char *hp_profile_stream_fault(const struct hp_profile_stream *stream) { return stream->check.fault; }
