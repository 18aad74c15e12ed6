/* SPDX-License-Identifier: MIT
 * snapshot.h - one moment of the books as plain arrays: what crosses from record to the encoder. Past this point no lock of
 * the profiler is held.
 * Ownership   everything lives in the dump's arena, but what is never freed: the stacks' frames, modules and kept sets of them.
 * Signals     async-signal-safe throughout. */
#ifndef HP_SNAPSHOT_H
#define HP_SNAPSHOT_H

#include "arena.h"
#include "compiler.h"

/* Values of a row, in the order of the file's sample types. */
enum { HP_ALLOC_OBJECTS, HP_ALLOC_BYTES, HP_INUSE_OBJECTS, HP_INUSE_BYTES, HP_VALUES };

/* What a stack is when it is no stack, or not a whole one. */
enum hp_row_stack {
  HP_ROW_WHOLE,
  HP_ROW_TRUNCATED,        /* frames, then the pseudo frame [truncated] */
  HP_ROW_NO_STACK,         /* only the pseudo frame [no stack] */
  HP_ROW_STACK_TABLE_FULL, /* only the pseudo frame [stack table full] */
};

struct hp_module_set;

struct hp_label {
  const char *key;
  const char *str; /* NULL: numeric */
  int64_t num;
  const char *unit; /* of num, or NULL */
};

struct hp_row {
  const uintptr_t *pcs; /* return addresses, leaf first */
  uint32_t depth;
  const struct hp_module_set *modules; /* the stack's frames are in these, or in none (unwind/module_set.h); NULL: in none */
  uint8_t stack;                       /* enum hp_row_stack */
  uint8_t label_count;
  const struct hp_label *labels;
  int64_t values[HP_VALUES];
};

enum hp_profile_kind { HP_KIND_FULL, HP_KIND_HEAP, HP_KIND_ALLOC, HP_KIND_DELTA, HP_KIND_PEAK, HP_KINDS };

struct hp_snapshot {
  const struct hp_row *rows;
  size_t row_count;
  enum hp_profile_kind kind; /* alloc and delta: two columns (the first two values); the others four */
  int64_t time_nanos;        /* wall clock */
  int64_t duration_nanos;
  int64_t period_bytes; /* the sample rate */
  const char *const *comments;
  size_t comment_count;
};

#endif
