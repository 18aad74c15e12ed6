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

static bool is_all_zero(enum hp_profile_kind kind, const struct hp_row *row) {
  for (size_t i = 0; i < hp_profile_rows_columns(kind); i++) {
    if (hp_profile_rows_value(kind, row, i) != 0) return false;
  }
  return true;
}

/* How many frames of a row can matter. */
static uint32_t depth_wanted(const struct hp_row *row, uint32_t max_depth) {
  if (row->stack != HP_ROW_WHOLE && row->stack != HP_ROW_TRUNCATED) return 0;
  uint32_t limit = max_depth + HP_ROW_LEAF_FRAMES;
  return row->depth < limit ? row->depth : limit;
}

/* How many frames at the root end `row`, of which all are wanted, has in common with the one collected before it: the stacks
 * of a program come in families, and comparing is cheaper than looking up. */
static uint32_t shared_with(const struct hp_profile_row *before, const struct hp_row *row) {
  if (before == NULL || before->row->epoch != row->epoch || before->count != before->row->depth) return 0;
  uint32_t limit = before->count < row->depth ? before->count : row->depth;
  const uintptr_t *end = row->pcs + row->depth;
  const uintptr_t *before_end = before->row->pcs + before->row->depth;
  uint32_t shared = 0;
  while (shared < limit && end[-1 - (ptrdiff_t)shared] == before_end[-1 - (ptrdiff_t)shared]) shared++;
  return shared;
}

static bool collect_frames(struct hp_profile_row *kept, uint32_t depth, const struct hp_profile_row *before,
                           struct hp_location_table *locations) {
  const struct hp_row *row = kept->row;
  uint32_t shared = depth != 0 && depth == row->depth ? shared_with(before, row) : 0;
  for (uint32_t i = 0; i < depth - shared; i++) {
    if (row->pcs[i] <= 1) continue; /* no address at all: readers refuse such a location */
    uint32_t frame = hp_location_table_add(locations, row->pcs[i], row->epoch);
    if (frame == HP_FRAME_NONE) return false;
    kept->frames[kept->count++] = frame;
  }
  if (shared != 0)
    memcpy(kept->frames + kept->count, before->frames + before->count - shared, shared * sizeof kept->frames[0]);
  kept->count += shared;
  kept->has_more = depth != 0 && depth < row->depth;
  return true;
}

bool hp_profile_rows_collect(struct hp_profile_rows *rows, const struct hp_snapshot *snapshot, uint32_t max_depth,
                             struct hp_location_table *locations, struct hp_arena *arena) {
  size_t frames = 0;
  rows->count = 0;
  for (size_t i = 0; i < snapshot->row_count; i++) {
    if (is_all_zero(snapshot->kind, &snapshot->rows[i])) continue;
    frames += depth_wanted(&snapshot->rows[i], max_depth) + 1;
    rows->count++;
  }
  rows->list = hp_arena_alloc(arena, rows->count * sizeof rows->list[0]);
  uint32_t *next_frame = hp_arena_alloc(arena, frames * sizeof next_frame[0]);
  if (rows->list == NULL || next_frame == NULL) return false;
  struct hp_profile_row *kept = rows->list;
  for (size_t i = 0; i < snapshot->row_count; i++) {
    const struct hp_row *row = &snapshot->rows[i];
    if (is_all_zero(snapshot->kind, row)) continue;
    uint32_t depth = depth_wanted(row, max_depth);
    kept->row = row;
    kept->frames = next_frame;
    if (!collect_frames(kept, depth, kept == rows->list ? NULL : kept - 1, locations)) return false;
    next_frame += depth + 1;
    kept++;
  }
  return true;
}

static bool is_operator_new(const struct hp_location_table *locations, uint32_t frame) {
  const char *name = locations->frames[frame].name;
  return name != NULL && hp_symbols_is_operator_new(name);
}

static void finish_row(struct hp_profile_row *kept, uint32_t max_depth, const struct hp_location_table *locations) {
  uint32_t left_out = 0;
  while (left_out < HP_ROW_LEAF_FRAMES && left_out + 1 < kept->count && is_operator_new(locations, kept->frames[left_out])) {
    left_out++;
  }
  kept->frames += left_out;
  kept->count -= left_out;
  bool is_cut = kept->count > max_depth || kept->has_more;
  if (kept->count > max_depth) kept->count = max_depth;
  if (is_cut || kept->row->stack == HP_ROW_TRUNCATED) {
    kept->frames[kept->count++] = HP_PSEUDO_TRUNCATED;
  } else if (kept->row->stack == HP_ROW_STACK_TABLE_FULL) {
    kept->frames[kept->count++] = HP_PSEUDO_STACK_TABLE_FULL;
  } else if (kept->count == 0) {
    kept->frames[kept->count++] = HP_PSEUDO_NO_STACK;
  }
}

void hp_profile_rows_finish(struct hp_profile_rows *rows, uint32_t max_depth, const struct hp_location_table *locations) {
  for (size_t i = 0; i < rows->count; i++) finish_row(&rows->list[i], max_depth, locations);
}
