/* SPDX-License-Identifier: MIT
 * profile_rows.h - which rows of a snapshot a file gets, and each row's frames: without operator new at the leaf, cut to the
 * depth asked for, with the pseudo frames that say what is missing.
 *
 * Invariants  weight is never dropped: a row without a usable frame gets [no stack]. Rows that are zero in every column the
 *             kind writes are left out. A row never ends up without a frame.
 * Callers     pprof.c, in the order collect, (names are looked up), finish. Signals: async-signal-safe. */
#ifndef HP_PROFILE_ROWS_H
#define HP_PROFILE_ROWS_H

#include "location_table.h"
#include "snapshot.h"

/* Frames at the leaf whose names are looked up: new[](size, nothrow) calls new[](size), that new(size), and one more. */
enum { HP_ROW_LEAF_FRAMES = 4, HP_ROW_DEPTH_MAX = 4096 };

struct hp_profile_row {
  const struct hp_row *row;
  uint32_t *frames; /* numbers in the location table, leaf first; room for one more */
  uint32_t count;
  bool has_more; /* frames that were not even collected */
};

struct hp_profile_rows {
  struct hp_profile_row *list;
  size_t count;
};

/* The value columns a kind writes: 2 or 4. */
size_t hp_profile_rows_columns(enum hp_profile_kind kind);
/* What the file says of `column` in that row. */
int64_t hp_profile_rows_value(enum hp_profile_kind kind, const struct hp_row *row, size_t column);

/* Select the rows and enter their frames into `locations`. false: no memory. */
bool hp_profile_rows_collect(struct hp_profile_rows *rows, const struct hp_snapshot *snapshot, uint32_t max_depth,
                             struct hp_location_table *locations, struct hp_arena *arena);

/* With the names known as far as they are: leave out operator new, cut, add the pseudo frames. */
void hp_profile_rows_finish(struct hp_profile_rows *rows, uint32_t max_depth, const struct hp_location_table *locations);

#endif
