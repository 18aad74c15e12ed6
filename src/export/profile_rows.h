/* SPDX-License-Identifier: MIT
 * profile_rows.h - which rows of a snapshot a file gets, and each row's frames: without operator new at the leaf, cut to
 * the depth asked for, with the pseudo frame that says what is missing.
 *
 * Invariants  weight is never dropped: a row without a usable frame gets [no stack]. Rows that are zero in every column
 *             the kind writes are left out. A row never ends up without a frame. The rows are read twice, once to meet
 *             all frames and once, with the names known, to write them; the frames of one row at a time are kept: a
 *             profile of a million stacks takes no more memory than its distinct frames.
 * Callers     pprof.c. Signals: async-signal-safe. */
#ifndef HP_PROFILE_ROWS_H
#define HP_PROFILE_ROWS_H

#include "location_table.h"
#include "snapshot.h"

/* Frames at the leaf whose names are looked up: new[](size, nothrow) calls new[](size), that new(size), and one more. */
enum { HP_ROW_LEAF_FRAMES = 4, HP_ROW_DEPTH_MAX = 4096 };

/* The frames of a row: numbers in the location table, leaf first; valid until the next row is read. */
struct hp_row_frames {
  const uint32_t *frames;
  uint32_t count;
  uint32_t pseudo; /* one more at the root end; HP_FRAME_NONE: none */
};

struct hp_profile_rows {
  const struct hp_snapshot *snapshot;
  struct hp_location_table *locations;
  uint32_t max_depth;
  const struct hp_row *before; /* the row read last, its frames in buffers[turn] */
  uint32_t before_count;
  unsigned turn;
  uint32_t *buffers[2]; /* max_depth + HP_ROW_LEAF_FRAMES each */
};

/* The value columns a kind writes: 2 or 4. */
size_t hp_profile_rows_columns(enum hp_profile_kind kind);
/* What the file says of `column` in that row. */
int64_t hp_profile_rows_value(enum hp_profile_kind kind, const struct hp_row *row, size_t column);

/* Prepare to read the rows; max_depth is brought into 1..HP_ROW_DEPTH_MAX. false: no memory. */
bool hp_profile_rows_init(struct hp_profile_rows *rows, const struct hp_snapshot *snapshot, uint32_t max_depth,
                          struct hp_location_table *locations, struct hp_arena *arena);

/* Enter the frames of every row the file gets into the location table. false: no memory. */
bool hp_profile_rows_collect(struct hp_profile_rows *rows);

/* Is the row in the file? */
bool hp_profile_rows_has(const struct hp_profile_rows *rows, const struct hp_row *row);
/* Its frames as the file has them, with the names known as far as they are. false: no memory. */
bool hp_profile_rows_read(struct hp_profile_rows *rows, const struct hp_row *row, struct hp_row_frames *out);

#endif
