/* SPDX-License-Identifier: MIT
 * profile_stream.h - pieces of a Profile -> packed, checked, gzipped, written. A piece is a Profile that holds a few
 * elements of one kind: concatenated messages merge, so the file is their sum.
 *
 * Invariants  a piece refers to what earlier pieces defined, but for locations of samples (pprof_check.h). After a
 *             failure every call returns it.
 * Callers     pprof.c. Signals: async-signal-safe. Memory: the dump's arena, about 400 KiB. */
#ifndef HP_PROFILE_STREAM_H
#define HP_PROFILE_STREAM_H

#include "pprof.h"
#include "pprof_check.h"
#include "profile.pb-c.h"

struct hp_profile_stream;

/* A new stream in the arena; NULL: no memory. row_count: of the profile to come, says how much memory is worth it. */
struct hp_profile_stream *hp_profile_stream_open(struct hp_arena *arena, struct hp_byte_sink *sink,
                                                 enum hp_profile_kind kind, size_t row_count);

/* 0 or a negative errno: -EMSGSIZE (a piece larger than HP_PIECE_BYTES_MAX), -EBADMSG (own check), the sink's. */
enum { HP_PIECE_BYTES_MAX = 64 * 1024 };
int hp_profile_stream_put(struct hp_profile_stream *stream, const Perftools__Profiles__Profile *piece);
/* The same for a piece that surely takes no more than bytes_max: counting its bytes is a tenth of an encode. */
int hp_profile_stream_put_bounded(struct hp_profile_stream *stream, const Perftools__Profiles__Profile *piece,
                                  size_t bytes_max);

/* Everything that is still in the making goes to the sink. 0 or a negative errno. */
int hp_profile_stream_close(struct hp_profile_stream *stream);

/* What the own check found, "" if nothing; lives in the arena. */
const char *hp_profile_stream_fault(const struct hp_profile_stream *stream);

#endif
