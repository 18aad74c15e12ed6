/* SPDX-License-Identifier: MIT
 * profile_rows.c - see profile_rows.h. */
#include "profile_rows.h"

#include <string.h>

#include "symbols.h"

size_t hp_profile_rows_columns(enum hp_profile_kind kind) {
  return kind == HP_KIND_ALLOC || kind == HP_KIND_DELTA ? 2 : HP_VALUES;
}

int64_t hp_profile_rows_value(enum hp_profile_kind kind, const struct hp_row *row, size_t column) {
  bool is_alloc_side = column == HP_ALLOC_OBJECTS || column == HP_ALLOC_BYTES;
  return kind == HP_KIND_HEAP && is_alloc_side ? 0 : row->values[column];
}

bool hp_profile_rows_has(const struct hp_profile_rows *rows, const struct hp_row *row) {
  enum hp_profile_kind kind = rows->snapshot->kind;
  for (size_t i = 0; i < hp_profile_rows_columns(kind); i++) {
    if (hp_profile_rows_value(kind, row, i) != 0) return true;
  }
  return false;
}

bool hp_profile_rows_init(struct hp_profile_rows *rows, const struct hp_snapshot *snapshot, uint32_t max_depth,
                          struct hp_location_table *locations, struct hp_arena *arena) {
  memset(rows, 0, sizeof *rows);
  rows->snapshot = snapshot;
  rows->locations = locations;
  rows->max_depth = max_depth < 1 ? 1 : max_depth > HP_ROW_DEPTH_MAX ? HP_ROW_DEPTH_MAX : max_depth;
  for (size_t i = 0; i < 2; i++) {
    rows->buffers[i] = hp_arena_alloc(arena, (rows->max_depth + HP_ROW_LEAF_FRAMES) * sizeof rows->buffers[0][0]);
    if (rows->buffers[i] == NULL) return false;
  }
  return true;
}

/* How many frames of a row can matter. */
static uint32_t depth_wanted(const struct hp_profile_rows *rows, const struct hp_row *row) {
  if (row->stack != HP_ROW_WHOLE && row->stack != HP_ROW_TRUNCATED) return 0;
  uint32_t limit = rows->max_depth + HP_ROW_LEAF_FRAMES;
  return row->depth < limit ? row->depth : limit;
}

/* How many frames at the root end `row`, of which all are wanted, has in common with the one read before it: the stacks of a
 * program come in families, and comparing is cheaper than looking up. */
static uint32_t shared_with_before(const struct hp_profile_rows *rows, const struct hp_row *row) {
  const struct hp_row *before = rows->before;
  if (before == NULL || before->modules != row->modules || rows->before_count != before->depth) return 0;
  uint32_t limit = before->depth < row->depth ? before->depth : row->depth;
  const uintptr_t *end = row->pcs + row->depth;
  const uintptr_t *before_end = before->pcs + before->depth;
  uint32_t shared = 0;
  while (shared < limit && end[-1 - (ptrdiff_t)shared] == before_end[-1 - (ptrdiff_t)shared]) shared++;
  return shared;
}

/* All frames of the row that can matter, into the buffer whose turn it is: rows->before and what belongs to it. */
static bool look_up_frames(struct hp_profile_rows *rows, const struct hp_row *row) {
  uint32_t depth = depth_wanted(rows, row);
  uint32_t shared = depth != 0 && depth == row->depth ? shared_with_before(rows, row) : 0;
  const uint32_t *before = rows->buffers[rows->turn] + rows->before_count;
  uint32_t *frames = rows->buffers[rows->turn ^ 1];
  uint32_t count = 0;
  for (uint32_t i = 0; i < depth - shared; i++) {
    if (row->pcs[i] <= 1) continue; /* no address at all: readers refuse such a location */
    uint32_t frame = hp_location_table_add(rows->locations, row->pcs[i], row->modules);
    if (frame == HP_FRAME_NONE) return false;
    frames[count++] = frame;
  }
  if (shared != 0) memcpy(frames + count, before - shared, shared * sizeof frames[0]);
  rows->turn ^= 1;
  rows->before = row;
  rows->before_count = count + shared;
  return true;
}

bool hp_profile_rows_collect(struct hp_profile_rows *rows) {
  for (size_t i = 0; i < rows->snapshot->row_count; i++) {
    const struct hp_row *row = &rows->snapshot->rows[i];
    if (!hp_profile_rows_has(rows, row)) continue;
    if (!look_up_frames(rows, row)) return false;
    const uint32_t *frames = rows->buffers[rows->turn];
    for (uint32_t k = 0; k < rows->before_count && k < HP_ROW_LEAF_FRAMES; k++) {
      rows->locations->frames[frames[k]].is_near_leaf = true;
    }
  }
  return true;
}

static bool is_operator_new(const struct hp_profile_rows *rows, uint32_t frame) {
  const char *name = rows->locations->frames[frame].name;
  return name != NULL && hp_symbols_is_operator_new(name);
}

bool hp_profile_rows_read(struct hp_profile_rows *rows, const struct hp_row *row, struct hp_row_frames *out) {
  if (!look_up_frames(rows, row)) return false;
  const uint32_t *frames = rows->buffers[rows->turn];
  uint32_t count = rows->before_count;
  uint32_t left_out = 0;
  while (left_out < HP_ROW_LEAF_FRAMES && left_out + 1 < count && is_operator_new(rows, frames[left_out])) left_out++;
  count -= left_out;
  uint32_t depth = depth_wanted(rows, row);
  bool is_cut = count > rows->max_depth || (depth != 0 && depth < row->depth);
  out->frames = frames + left_out;
  out->count = count < rows->max_depth ? count : rows->max_depth;
  out->pseudo = HP_FRAME_NONE;
  if (is_cut || row->stack == HP_ROW_TRUNCATED) {
    out->pseudo = HP_PSEUDO_TRUNCATED;
  } else if (row->stack == HP_ROW_STACK_TABLE_FULL) {
    out->pseudo = HP_PSEUDO_STACK_TABLE_FULL;
  } else if (count == 0) {
    out->pseudo = HP_PSEUDO_NO_STACK;
  }
  return true;
}
