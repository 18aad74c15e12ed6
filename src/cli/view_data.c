/* SPDX-License-Identifier: MIT
 * view_data.c - see view_data.h. Errors are worked out here, by the same code as `heapprof top` (sampling_error.c): the page
 * only adds variances up.
 */
#include "view_data.h"

#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "frame_filter.h"
#include "path_clean.h"
#include "sampling_error.h"
#include "text_output.h"
#include "view_frames.h"
#include "view_reconcile.h"
#include "view_tree.h"

#define NODES_MAX ((size_t)1 << 26) /* a page of more could not be opened anyway */
#define TREND_ROWS_MAX 100          /* charts on the page */

/* One file's samples as nodes of the tree. */
struct rows {
  uint32_t *sample; /* kept by the filters */
  uint32_t *node;
  size_t count;
};

struct builder {
  const struct hp_view_input *input;
  struct hp_view_frames *frames;
  struct hp_view_tree tree;
  uint32_t at; /* node reached while a stack is walked */
  struct hp_json json;
};

static bool step_down(void *context, uint32_t frame) {
  struct builder *builder = context;
  if (builder->tree.count >= NODES_MAX) return false;
  builder->at = hp_view_tree_child(&builder->tree, builder->at, frame);
  return true;
}

static int collect(struct builder *builder, const struct hp_profile *profile, struct rows *out, struct hp_error *error) {
  struct hp_view_ids ids;
  struct hp_filter *filter = hp_filter_new(profile, builder->input->focus, builder->input->ignore, error);
  if (filter == NULL) return -1;
  if (hp_view_frames_add(builder->frames, profile, &ids, error) != 0) {
    hp_filter_free(filter);
    return -1;
  }
  out->sample = hp_alloc(profile->sample_count * sizeof *out->sample);
  out->node = hp_alloc(profile->sample_count * sizeof *out->node);
  for (size_t i = 0; i < profile->sample_count; i++) {
    if (!hp_filter_passes(filter, i)) continue;
    builder->at = 0;
    hp_view_stack_walk(profile, &ids, i, step_down, builder);
    out->sample[out->count] = (uint32_t)i;
    out->node[out->count++] = builder->at;
  }
  hp_filter_free(filter);
  hp_view_ids_free(&ids);
  if (builder->tree.count >= NODES_MAX)
    return hp_error_set(error, "the profile has more than %zu stack frames to show", NODES_MAX);
  return 0;
}

/* The variances of each row in one column; false when the file does not allow to know them, or says that all were sampled. */
static bool find_variances(const struct hp_profile *profile, const struct rows *rows, uint32_t type,
                           struct hp_sampling_variance *out) {
  uint32_t partner = hp_profile_error_partner(profile, type);
  if (partner == HP_NONE || profile->period == 1) return false;
  bool of_bytes = strcmp(hp_profile_text(profile, profile->types[type].unit), "bytes") == 0;
  memset(out, 0, rows->count * sizeof *out);
  for (size_t r = 0; r < rows->count; r++) {
    int64_t value = hp_profile_value(profile, rows->sample[r], type),
            other = hp_profile_value(profile, rows->sample[r], partner);
    if (value == 0) continue;
    if (of_bytes)
      hp_sampling_variance_add(&out[r], NULL, profile->period, other, value);
    else
      hp_sampling_variance_add(NULL, &out[r], profile->period, value, other);
  }
  return true;
}

/* Pairs [sums, of one sample] by sample type, or null. */
static void write_variances(struct hp_json *json, const struct hp_profile *profile, const struct rows *rows,
                            const uint32_t *columns, size_t type_count) {
  struct hp_sampling_variance *variances = hp_alloc(rows->count * sizeof *variances);
  hp_json_array(json, "variances");
  for (size_t t = 0; t < type_count; t++) {
    if (!find_variances(profile, rows, columns[t], variances)) {
      hp_json_null(json, NULL);
      continue;
    }
    hp_json_array(json, NULL);
    hp_json_array(json, NULL);
    for (size_t r = 0; r < rows->count; r++) hp_json_real(json, NULL, variances[r].sum);
    hp_json_end(json, ']');
    hp_json_array(json, NULL);
    for (size_t r = 0; r < rows->count; r++) hp_json_real(json, NULL, variances[r].one_sample_max);
    hp_json_end(json, ']');
    hp_json_end(json, ']');
  }
  hp_json_end(json, ']');
  free(variances);
}

/* `columns[t]`: the column of this profile that is sample type t of the page. */
static void write_rows(struct builder *builder, const char *key, const struct hp_profile *profile, const struct rows *rows,
                       const uint32_t *columns, size_t type_count, const uint32_t *number_of) {
  struct hp_json *json = &builder->json;
  hp_json_object(json, key);
  hp_json_array(json, "node");
  int64_t before = 0;
  for (size_t r = 0; r < rows->count; r++) {
    int64_t number = number_of[rows->node[r]];
    hp_json_integer(json, NULL, number - before);
    before = number;
  }
  hp_json_end(json, ']');
  hp_json_array(json, "values");
  for (size_t t = 0; t < type_count; t++) {
    hp_json_array(json, NULL);
    for (size_t r = 0; r < rows->count; r++)
      hp_json_integer(json, NULL, hp_profile_value(profile, rows->sample[r], columns[t]));
    hp_json_end(json, ']');
  }
  hp_json_end(json, ']');
  write_variances(json, profile, rows, columns, type_count);
  hp_json_end(json, '}');
}

static void write_file(struct hp_json *json, const char *name, const struct hp_profile *profile) {
  hp_json_object(json, NULL);
  hp_json_string(json, "name", name);
  hp_json_integer(json, "time_ms", profile->time_nanos / 1000000);
  hp_json_integer(json, "duration_ms", profile->duration_nanos / 1000000);
  hp_json_integer(json, "period", profile->period);
  hp_json_array(json, "comments");
  for (size_t i = 0; i < profile->comment_count && i < 64; i++)
    hp_json_string(json, NULL, hp_profile_text(profile, profile->comments[i]));
  hp_json_end(json, ']');
  hp_json_end(json, '}');
}

static void write_types(struct hp_json *json, const struct hp_profile *profile) {
  hp_json_array(json, "types");
  for (size_t t = 0; t < profile->type_count; t++) {
    hp_json_object(json, NULL);
    hp_json_string(json, "type", hp_profile_text(profile, profile->types[t].type));
    hp_json_string(json, "unit", hp_profile_text(profile, profile->types[t].unit));
    uint32_t partner = hp_profile_type_partner(profile, (uint32_t)t);
    hp_json_integer(json, "partner", partner == HP_NONE ? -1 : (int64_t)partner);
    hp_json_end(json, '}');
  }
  hp_json_end(json, ']');
}

static void write_frames(struct builder *builder) {
  struct hp_json *json = &builder->json;
  const struct hp_view_frames *frames = builder->frames;
  hp_json_array(json, "strings");
  for (size_t i = 0; i < frames->texts->string_count; i++)
    hp_json_string(json, NULL, hp_profile_text(frames->texts, (uint32_t)i));
  hp_json_end(json, ']');
  hp_json_object(json, "frames");
  const char *const keys[] = {"name", "module", "file", "line"};
  for (size_t k = 0; k < 4; k++) {
    hp_json_array(json, keys[k]);
    for (size_t i = 0; i < frames->count; i++) {
      const struct hp_view_frame *frame = &frames->frames[i];
      hp_json_integer(json, NULL, k == 0 ? frame->name : k == 1 ? frame->module : k == 2 ? frame->file : frame->line);
    }
    hp_json_end(json, ']');
  }
  hp_json_end(json, '}');
}

static void write_nodes(struct builder *builder, const uint32_t *number_of, const uint32_t *node_of) {
  struct hp_json *json = &builder->json;
  hp_json_object(json, "nodes");
  hp_json_array(json, "up");
  for (uint32_t i = 1; i < builder->tree.count; i++)
    hp_json_integer(json, NULL, (int64_t)i - number_of[builder->tree.nodes[node_of[i]].parent]);
  hp_json_end(json, ']');
  hp_json_array(json, "frame");
  for (uint32_t i = 1; i < builder->tree.count; i++) hp_json_integer(json, NULL, builder->tree.nodes[node_of[i]].frame);
  hp_json_end(json, ']');
  hp_json_end(json, '}');
}

static void write_series(struct hp_json *json, const struct hp_trend *trend, const struct hp_trend_row *row) {
  hp_json_object(json, NULL);
  hp_json_bool(json, "suspect", row->fit.is_suspect);
  hp_json_bool(json, "monotone", row->fit.is_monotone);
  hp_json_bool(json, "levels_off", row->fit.levels_off);
  hp_json_real(json, "slope", row->fit.slope);
  hp_json_real(json, "slope_se", row->fit.slope_error);
  hp_json_real(json, "p", row->fit.p_adjusted);
  hp_json_string(json, "age", row->age);
  hp_json_array(json, "values");
  for (size_t d = 0; d < trend->dump_count; d++) hp_json_integer(json, NULL, hp_trend_whole_bytes(trend, row, d));
  hp_json_end(json, ']');
  hp_json_array(json, "errors");
  for (size_t d = 0; d < trend->dump_count; d++) hp_json_real(json, NULL, hp_trend_error(trend, row, d));
  hp_json_end(json, ']');
  hp_json_array(json, "stack");
  for (uint32_t i = 0; i < row->frame_count; i++) hp_json_integer(json, NULL, trend->frame_list[row->first_frame + i]);
  hp_json_end(json, ']');
  hp_json_end(json, '}');
}

static void write_trend(struct hp_json *json, const struct hp_trend *trend) {
  if (trend == NULL) {
    hp_json_null(json, "trend");
    return;
  }
  hp_json_object(json, "trend");
  hp_json_integer(json, "tested", (int64_t)trend->tested);
  hp_json_array(json, "times_ms");
  for (size_t d = 0; d < trend->dump_count; d++) hp_json_integer(json, NULL, trend->dumps[d].time_nanos / 1000000);
  hp_json_end(json, ']');
  hp_json_array(json, "series");
  size_t shown = 0;
  for (size_t i = 0; i < trend->row_count && shown < TREND_ROWS_MAX; i++) {
    if (!trend->rows[i].fit.is_tested || !(trend->rows[i].fit.slope > 0)) continue;
    write_series(json, trend, &trend->rows[i]);
    shown++;
  }
  hp_json_end(json, ']');
  hp_json_end(json, '}');
}

/* The base's column for each type of the profile. */
static int match_types(const struct hp_profile *profile, const struct hp_profile *base, const char *base_name,
                       uint32_t *columns, struct hp_error *error) {
  for (size_t t = 0; t < profile->type_count; t++) {
    const char *type = hp_profile_text(profile, profile->types[t].type);
    columns[t] = HP_NONE;
    for (size_t b = 0; b < base->type_count; b++)
      if (strcmp(type, hp_profile_text(base, base->types[b].type)) == 0) columns[t] = (uint32_t)b;
    if (columns[t] == HP_NONE) return hp_error_set(error, "%s: has no sample type %s to compare with", base_name, type);
  }
  return 0;
}

static void write_all(struct builder *builder, const struct rows *rows, const struct rows *base_rows, uint32_t *columns,
                      const uint32_t *base_columns) {
  const struct hp_view_input *input = builder->input;
  const struct hp_profile *profile = input->profile;
  struct hp_json *json = &builder->json;
  hp_json_object(json, NULL);
  hp_json_array(json, "files");
  if (input->base != NULL) write_file(json, input->base_name, input->base);
  write_file(json, input->name, profile);
  hp_json_end(json, ']');
  const char *program = profile->mapping_count != 0 ? hp_profile_text(profile, profile->mappings[0].file) : "";
  hp_json_string(json, "program", hp_path_base_name(program));
  write_types(json, profile);
  hp_json_integer(json, "default_type", hp_profile_type_find(profile, input->type));
  write_frames(builder);
  uint32_t *number_of, *node_of;
  hp_view_tree_number(&builder->tree, &number_of, &node_of);
  write_nodes(builder, number_of, node_of);
  write_rows(builder, "rows", profile, rows, columns, profile->type_count, number_of);
  if (input->base != NULL)
    write_rows(builder, "base", input->base, base_rows, base_columns, profile->type_count, number_of);
  else
    hp_json_null(json, "base");
  free(number_of);
  free(node_of);
  double one = hp_sampling_error(&(struct hp_sampling_variance){.one_sample_max = 1});
  hp_json_real(json, "one_sample_weight", one * one);
  hp_view_reconcile_write(json, "reconcile", profile);
  write_trend(json, input->trend);
  hp_json_end(json, '}');
}

int hp_view_data_write(FILE *out, const struct hp_view_input *input, struct hp_error *error) {
  const struct hp_profile *profile = input->profile;
  if (hp_profile_type_find(profile, input->type) == HP_NONE)
    return hp_error_set(error, "%s: has no sample type %s", input->name, input->type);
  struct builder builder = {.input = input, .frames = input->frames};
  struct rows rows = {0}, base_rows = {0};
  uint32_t *columns = hp_alloc(profile->type_count * sizeof *columns),
           *base_columns = hp_alloc(profile->type_count * sizeof *columns);
  for (size_t t = 0; t < profile->type_count; t++) columns[t] = (uint32_t)t;
  hp_view_tree_init(&builder.tree);
  int result = collect(&builder, profile, &rows, error);
  if (result == 0 && input->base != NULL) {
    result = match_types(profile, input->base, input->base_name, base_columns, error);
    if (result == 0) result = collect(&builder, input->base, &base_rows, error);
  }
  if (result == 0) {
    hp_json_begin(&builder.json, out, false);
    write_all(&builder, &rows, &base_rows, columns, base_columns);
  }
  free(rows.sample);
  free(rows.node);
  free(base_rows.sample);
  free(base_rows.node);
  free(columns);
  free(base_columns);
  hp_view_tree_free(&builder.tree);
  return result;
}
