/* SPDX-License-Identifier: MIT
 * profile_fixture.c - see profile_fixture.h. */
#include "profile_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export_test.h"

enum { RAW_MAX = 64 * 1024 * 1024 };

static int write_memory(struct hp_byte_sink *base, const void *bytes, size_t n) {
  struct memory_sink *sink = (struct memory_sink *)base;
  if (++sink->writes == sink->fail_at) return -ENOSPC;
  sink->bytes = realloc(sink->bytes, sink->length + n);
  assert_non_null(sink->bytes);
  memcpy(sink->bytes + sink->length, bytes, n);
  sink->length += n;
  return 0;
}

void memory_sink_init(struct memory_sink *sink) { *sink = (struct memory_sink){.base.write = write_memory}; }

void memory_sink_free(struct memory_sink *sink) { free(sink->bytes); }

uint8_t *gunzip(const uint8_t *bytes, size_t n, size_t *out_length) {
  z_stream zlib = {.next_in = (uint8_t *)bytes, .avail_in = (unsigned)n};
  uint8_t *raw = malloc(RAW_MAX);
  assert_non_null(raw);
  assert_int_equal(inflateInit2(&zlib, 15 + 16), Z_OK);
  zlib.next_out = raw;
  zlib.avail_out = RAW_MAX;
  assert_int_equal(inflate(&zlib, Z_FINISH), Z_STREAM_END);
  assert_int_equal(zlib.avail_in, 0);
  *out_length = zlib.total_out;
  inflateEnd(&zlib);
  return raw;
}

struct decoded encode_and_decode(const struct hp_snapshot *snapshot, const struct hp_pprof_options *options) {
  struct hp_arena arena = {0};
  struct memory_sink sink;
  const char *fault = NULL;
  memory_sink_init(&sink);
  int status = hp_pprof_encode(snapshot, options, &arena, &sink.base, &fault);
  if (status != 0) print_error("encode: %d \"%s\"\n", status, fault != NULL ? fault : "");
  assert_int_equal(status, 0);
  struct decoded decoded;
  decoded.raw = gunzip(sink.bytes, sink.length, &decoded.raw_length);
  decoded.profile = perftools__profiles__profile__unpack(NULL, decoded.raw_length, decoded.raw);
  assert_non_null(decoded.profile);
  memory_sink_free(&sink);
  hp_arena_reset(&arena);
  return decoded;
}

void decoded_free(struct decoded *decoded) {
  perftools__profiles__profile__free_unpacked(decoded->profile, NULL);
  free(decoded->raw);
}

const char *string_of(const struct decoded *decoded, int64_t id) {
  assert_in_range(id, 0, decoded->profile->n_string_table - 1);
  return decoded->profile->string_table[id];
}

const Perftools__Profiles__Location *location_of(const struct decoded *decoded, size_t sample, size_t at) {
  const Perftools__Profiles__Profile *profile = decoded->profile;
  assert_true(sample < profile->n_sample);
  assert_true(at < profile->sample[sample]->n_location_id);
  uint64_t id = profile->sample[sample]->location_id[at];
  assert_in_range(id, 1, profile->n_location);
  return profile->location[id - 1];
}

const Perftools__Profiles__Mapping *mapping_of(const struct decoded *decoded, size_t sample, size_t at) {
  uint64_t id = location_of(decoded, sample, at)->mapping_id;
  if (id == 0) return NULL;
  assert_in_range(id, 1, decoded->profile->n_mapping);
  return decoded->profile->mapping[id - 1];
}

const char *frame_of(const struct decoded *decoded, size_t sample, size_t at) {
  static char texts[8][32];
  static unsigned next;
  const Perftools__Profiles__Location *location = location_of(decoded, sample, at);
  if (location->n_line != 0) {
    uint64_t id = location->line[0]->function_id;
    assert_in_range(id, 1, decoded->profile->n_function);
    return string_of(decoded, decoded->profile->function[id - 1]->name);
  }
  char *text = texts[next++ % 8];
  snprintf(text, sizeof texts[0], "0x%lx", (unsigned long)location->address);
  return text;
}
