/* SPDX-License-Identifier: MIT
 * pprof.h - a snapshot as a gzipped perftools.profiles.Profile, streamed.
 *
 * Invariants  never the whole profile in memory: protobuf-c packs one sub-message at a time (a Profile with one repeated
 *             element: concatenated messages merge), zlib compresses, the sink gets bytes. Everything the file says is
 *             checked while it is made (pprof_check.h) and a fault fails the encode.
 * Callers     control/dump, one dump at a time.
 * Signals     async-signal-safe throughout: memory from the arena, raw system calls, no lock but none contended here. */
#ifndef HP_PPROF_H
#define HP_PPROF_H

#include "arena.h"
#include "snapshot.h"

/* Where the compressed bytes go. Returns 0 or a negative errno, which ends the encode. */
struct hp_byte_sink {
  int (*write)(struct hp_byte_sink *sink, const void *bytes, size_t n);
};

struct hp_pprof_options {
  bool with_symbols;      /* put function names in */
  uint32_t max_depth;     /* frames kept in a row, after allocator frames were left out at the leaf */
  const char *executable; /* path of the program, for mapping[0] */
};

/* 0, or a negative errno: -ENOMEM (arena), -EBADMSG (own check failed), or the sink's. *out_fault (if not NULL): what the
 * own check found, in the arena; NULL for any other end. */
int hp_pprof_encode(const struct hp_snapshot *snapshot, const struct hp_pprof_options *options, struct hp_arena *arena,
                    struct hp_byte_sink *sink, const char **out_fault);

#endif
