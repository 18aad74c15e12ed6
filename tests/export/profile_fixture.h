/* SPDX-License-Identifier: MIT
 * profile_fixture.h - encode into memory, and read the result with other code than wrote it (zlib's inflate and protobuf-c's
 * unpack). Failures fail the running CMocka test. */
#ifndef HP_PROFILE_FIXTURE_H
#define HP_PROFILE_FIXTURE_H

#include "pprof.h"
#include "profile.pb-c.h"

struct memory_sink {
  struct hp_byte_sink base;
  uint8_t *bytes;
  size_t length;
  unsigned writes;
  unsigned fail_at; /* the k-th write fails with -ENOSPC; 0: none */
};

struct decoded {
  uint8_t *raw; /* uncompressed */
  size_t raw_length;
  Perftools__Profiles__Profile *profile;
};

void memory_sink_init(struct memory_sink *sink);
void memory_sink_free(struct memory_sink *sink);

/* gzip -> raw; *out_length. To be freed. */
uint8_t *gunzip(const uint8_t *bytes, size_t n, size_t *out_length);

/* Encode; the result must be 0. */
struct decoded encode_and_decode(const struct hp_snapshot *snapshot, const struct hp_pprof_options *options);
void decoded_free(struct decoded *decoded);

const char *string_of(const struct decoded *decoded, int64_t id);
/* The name of frame `at` of sample `sample`, or its address in hexadecimal; static memory, eight answers live. */
const char *frame_of(const struct decoded *decoded, size_t sample, size_t at);
const Perftools__Profiles__Location *location_of(const struct decoded *decoded, size_t sample, size_t at);
const Perftools__Profiles__Mapping *mapping_of(const struct decoded *decoded, size_t sample, size_t at);

#endif
