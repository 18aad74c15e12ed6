/* SPDX-License-Identifier: MIT
 * pprof_check.h - is this what heapprof means to publish? Reads the wire format of the profile again, piece by piece,
 * by its own small walk (not with the code that wrote it), and keeps only counters and the ranges of the mappings.
 *
 * Checked     sample types, their units, order and number; ids 1, 2, 3, ... in order; every reference defined before it
 *             is used, but a sample's locations, which may follow; string_table[0] empty, strings UTF-8; mapping[0]
 *             there, start < limit; a location in its mapping, with an address or a function; a value for each type,
 *             0 <= in use <= allocated (kind heap: allocated 0), no row without a stack, no row that is all zero;
 *             period type, default type.
 * Callers     profile_stream feeds what it is about to compress; tests whole buffers.
 * Signals     async-signal-safe. Input may be any bytes. */
#ifndef HP_PPROF_CHECK_H
#define HP_PPROF_CHECK_H

#include "arena.h"
#include "snapshot.h"

/* The first strings are kept, cut to a size that tells type names apart: heapprof writes those first. */
enum { HP_PPROF_FAULT_MAX = 256, HP_PPROF_TYPES_MAX = 8, HP_PPROF_TEXTS = 24, HP_PPROF_TEXT_MAX = 32 };

struct hp_pprof_check_range {
  uint64_t start;
  uint64_t limit;
};

struct hp_pprof_check {
  struct hp_arena *arena; /* for the ranges */
  enum hp_profile_kind kind;
  uint64_t strings, mappings, functions, locations, samples; /* seen so far */
  uint64_t last_location; /* the greatest that a sample refers to, and the first sample that does */
  uint64_t last_location_sample;
  uint64_t types;       /* may be more than are kept */
  bool are_types_right; /* number, names and units were compared */
  uint64_t type_names[HP_PPROF_TYPES_MAX];
  uint64_t type_units[HP_PPROF_TYPES_MAX];
  uint64_t default_type, period_name, period_unit;
  struct hp_pprof_check_range *ranges; /* by mapping id - 1 */
  uint64_t range_capacity;
  char texts[HP_PPROF_TEXTS][HP_PPROF_TEXT_MAX];
  char fault[HP_PPROF_FAULT_MAX]; /* "" or the first fault, for the log */
};

/* Nothing read yet. The arena must outlive the check. */
void hp_pprof_check_begin(struct hp_pprof_check *check, enum hp_profile_kind kind, struct hp_arena *arena);

/* Whole fields of a Profile, each piece after the ones it refers to. 0, -EBADMSG (check->fault says what), -ENOMEM. */
int hp_pprof_check_feed(struct hp_pprof_check *check, const void *bytes, size_t n);

/* After the last piece: is everything there that must be? 0 or -EBADMSG. */
int hp_pprof_check_end(struct hp_pprof_check *check);

/* Tests: a whole profile, uncompressed, its fields in any order. 0, -EBADMSG or -ENOMEM; *out_fault: what is wrong, in the arena.
 */
int hp_pprof_check_buffer(const void *bytes, size_t n, enum hp_profile_kind kind, struct hp_arena *arena,
                          const char **out_fault);

#endif
