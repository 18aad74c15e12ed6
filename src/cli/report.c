/* SPDX-License-Identifier: MIT
 * report.c - see report.h.
 *
 * Rows are found once for every line of the profile, through a table keyed by function name (by_line: and file and line), so
 * that summing up is array work only: 100 000 stacks of 40 frames take a fraction of the time of reading them.
 */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "frame_filter.h"
#include "id_map.h"
#include "sampling_error.h"

/* What a row comes to: all that counting a frame touches, in one place, since with more rows than fit into the caches this is
 * where the time goes. */
struct tally {
  struct hp_sampling_variance flat_variance, cum_variance;
  int64_t flat, cum;
  size_t seen; /* the last sample counted in cum, plus one */
};

struct builder {
  const struct hp_profile *profile;
  const struct hp_report_options *options;
  struct hp_report *report;
  size_t row_capacity, edge_capacity;
  uint32_t *slots; /* open addressing over rows, row + 1 */
  size_t slot_count;
  struct tally *tallies;
  struct hp_id_map edges; /* caller << 32 | callee */
  size_t *edge_seen;
  size_t edge_seen_capacity;
  char **texts;
  size_t text_count, text_capacity;
};

/* Names made here, freed with the report. */
struct owned_text {
  char **texts;
  size_t count;
};

static int64_t add_saturated(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t magnitude(int64_t value) { return value >= 0 ? value : value == INT64_MIN ? INT64_MAX : -value; }

static uint64_t hash_text(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return hash;
}

static size_t slot_of(const struct builder *builder, const struct hp_report_row *key) {
  uint64_t hash =
      hash_text(hash_text(0xcbf29ce484222325u, key->function) * 31, key->file) ^ (uint64_t)key->line * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  hash *= 0xd6e8feb86659fd93u;
  return (size_t)(hash ^ hash >> 32) & (builder->slot_count - 1);
}

static void rehash(struct builder *builder) {
  builder->slot_count = builder->slot_count == 0 ? 256 : builder->slot_count * 2;
  free(builder->slots);
  builder->slots = hp_alloc_zeroed(builder->slot_count, sizeof *builder->slots);
  for (size_t i = 0; i < builder->report->row_count; i++) {
    size_t slot = slot_of(builder, &builder->report->rows[i]);
    while (builder->slots[slot] != 0) slot = (slot + 1) & (builder->slot_count - 1);
    builder->slots[slot] = (uint32_t)i + 1;
  }
}

static uint32_t row_of(struct builder *builder, const struct hp_report_row *key) {
  struct hp_report *report = builder->report;
  if ((report->row_count + 1) * 2 > builder->slot_count) rehash(builder);
  size_t slot = slot_of(builder, key);
  for (; builder->slots[slot] != 0; slot = (slot + 1) & (builder->slot_count - 1)) {
    const struct hp_report_row *row = &report->rows[builder->slots[slot] - 1];
    if (row->line == key->line && strcmp(row->function, key->function) == 0 && strcmp(row->file, key->file) == 0)
      return builder->slots[slot] - 1;
  }
  hp_array_reserve(&report->rows, &builder->row_capacity, report->row_count + 1, sizeof *report->rows);
  report->rows[report->row_count] = *key;
  builder->slots[slot] = (uint32_t)report->row_count + 1;
  return (uint32_t)report->row_count++;
}

/* A name for code without one: "[libfoo.so]" by function, as pprof has it, "0x7f12 libfoo.so+0x34" by line. */
static const char *address_name(struct builder *builder, const struct hp_location *location) {
  const struct hp_profile *profile = builder->profile;
  const struct hp_mapping *mapping = location->mapping != HP_NONE ? &profile->mappings[location->mapping] : NULL;
  const char *file = mapping != NULL ? hp_profile_text(profile, mapping->file) : "";
  const char *slash = strrchr(file, '/');
  if (slash != NULL) file = slash + 1;
  char *name;
  if (!builder->options->by_line)
    name = file[0] != '\0' ? hp_format("[%.200s]", file) : hp_strdup("<unknown>");
  else if (mapping == NULL)
    name = hp_format("0x%" PRIx64, location->address);
  else
    name = hp_format("0x%" PRIx64 " %.200s+0x%" PRIx64, location->address, file,
                     location->address - mapping->start + mapping->offset);
  hp_array_reserve(&builder->texts, &builder->text_capacity, builder->text_count + 1, sizeof *builder->texts);
  builder->texts[builder->text_count++] = name;
  return name;
}

static uint32_t nameless_row(struct builder *builder, const struct hp_location *location) {
  return row_of(builder, &(struct hp_report_row){.function = address_name(builder, location), .file = ""});
}

/* line_rows and location_rows. By function, each function is looked up once. */
static void find_rows(struct builder *builder) {
  const struct hp_profile *profile = builder->profile;
  struct hp_report *report = builder->report;
  uint32_t *function_rows = hp_alloc(profile->function_count * sizeof *function_rows);
  memset(function_rows, 0xff, profile->function_count * sizeof *function_rows);
  report->line_rows = hp_alloc(profile->line_count * sizeof *report->line_rows);
  report->location_rows = hp_alloc(profile->location_count * sizeof *report->location_rows);
  for (size_t i = 0; i < profile->location_count; i++) {
    const struct hp_location *location = &profile->locations[i];
    report->location_rows[i] = location->line_count == 0 ? nameless_row(builder, location) : HP_NONE;
    for (uint32_t l = location->first_line; l < location->first_line + location->line_count; l++) {
      const struct hp_line *line = &profile->lines[l];
      const struct hp_function *function = line->function != HP_NONE ? &profile->functions[line->function] : NULL;
      if (function == NULL || hp_profile_text(profile, function->name)[0] == '\0') {
        report->line_rows[l] = nameless_row(builder, location);
      } else if (builder->options->by_line) {
        report->line_rows[l] = row_of(builder, &(struct hp_report_row){.function = hp_profile_text(profile, function->name),
                                                                       .file = hp_profile_text(profile, function->file),
                                                                       .line = line->line});
      } else {
        uint32_t *row = &function_rows[line->function];
        if (*row == HP_NONE)
          *row = row_of(builder, &(struct hp_report_row){.function = hp_profile_text(profile, function->name), .file = ""});
        report->line_rows[l] = *row;
      }
    }
  }
  free(function_rows);
}

static void count_edge(struct builder *builder, uint32_t caller, uint32_t callee, size_t sample, int64_t value) {
  if (caller == callee) return;
  struct hp_report *report = builder->report;
  uint64_t key = (uint64_t)caller << 32 | callee;
  uint32_t index = hp_id_map_find(&builder->edges, key);
  if (index == HP_NONE) {
    index = (uint32_t)report->edge_count++;
    hp_id_map_add(&builder->edges, key, index);
    hp_array_reserve(&report->edges, &builder->edge_capacity, report->edge_count, sizeof *report->edges);
    hp_array_reserve(&builder->edge_seen, &builder->edge_seen_capacity, report->edge_count, sizeof *builder->edge_seen);
    report->edges[index] = (struct hp_report_edge){caller, callee, 0};
    builder->edge_seen[index] = 0;
  }
  if (builder->edge_seen[index] == sample + 1) return;
  builder->edge_seen[index] = sample + 1;
  report->edges[index].value = add_saturated(report->edges[index].value, value);
}

struct walk {
  size_t sample;
  int64_t value;
  struct hp_sampling_variance variance;
  uint32_t callee; /* the row beneath, HP_NONE at the leaf */
};

static void count_frame(struct builder *builder, struct walk *walk, uint32_t row) {
  struct tally *tally = &builder->tallies[row];
  if (walk->callee == HP_NONE) {
    tally->flat = add_saturated(tally->flat, walk->value);
    hp_sampling_variance_merge(&tally->flat_variance, &walk->variance);
  } else if (builder->options->edges) {
    count_edge(builder, row, walk->callee, walk->sample, walk->value);
  }
  if (tally->seen != walk->sample + 1) {
    tally->seen = walk->sample + 1;
    tally->cum = add_saturated(tally->cum, walk->value);
    hp_sampling_variance_merge(&tally->cum_variance, &walk->variance);
  }
  walk->callee = row;
}

static void count_stack(struct builder *builder, struct walk *walk) {
  const struct hp_profile *profile = builder->profile;
  const struct hp_sample *sample = &profile->samples[walk->sample];
  for (uint32_t i = 0; i < sample->location_count; i++) {
    uint32_t index = profile->stack_locations[sample->first_location + i];
    const struct hp_location *location = &profile->locations[index];
    if (location->line_count == 0) count_frame(builder, walk, builder->report->location_rows[index]);
    for (uint32_t l = location->first_line; l < location->first_line + location->line_count; l++)
      count_frame(builder, walk, builder->report->line_rows[l]);
  }
}

/* The column of the other kind if the two and the period let us say how good a figure is, else HP_NONE. */
static uint32_t error_partner(const struct hp_profile *profile, uint32_t type) {
  if (profile->period < 1 || strcmp(hp_profile_text(profile, profile->period_type.unit), "bytes") != 0) return HP_NONE;
  return hp_profile_type_partner(profile, type);
}

static struct hp_sampling_variance sample_variance(const struct builder *builder, size_t sample, uint32_t partner) {
  struct hp_sampling_variance variance = {0, 0};
  if (partner == HP_NONE) return variance;
  const struct hp_profile *profile = builder->profile;
  int64_t value = hp_profile_value(profile, sample, builder->report->type);
  int64_t other = hp_profile_value(profile, sample, partner);
  if (value == 0) return variance;
  if (strcmp(builder->report->unit, "bytes") == 0)
    hp_sampling_variance_add(&variance, NULL, profile->period, other, value);
  else
    hp_sampling_variance_add(NULL, &variance, profile->period, value, other);
  return variance;
}

static void sum_up(struct builder *builder, const struct hp_filter *filter) {
  const struct hp_profile *profile = builder->profile;
  struct hp_report *report = builder->report;
  uint32_t partner = error_partner(profile, report->type);
  struct hp_sampling_variance total = {0, 0};
  report->has_error = partner != HP_NONE;
  for (size_t i = 0; i < profile->sample_count; i++) {
    struct walk walk = {.sample = i, .value = hp_profile_value(profile, i, report->type), .callee = HP_NONE};
    report->total = add_saturated(report->total, magnitude(walk.value));
    if (walk.value == 0 || !hp_filter_passes(filter, i)) continue;
    report->shown_total = add_saturated(report->shown_total, walk.value);
    walk.variance = sample_variance(builder, i, partner);
    hp_sampling_variance_merge(&total, &walk.variance);
    count_stack(builder, &walk);
  }
  report->total_error = hp_sampling_error(&total);
  for (size_t i = 0; i < report->row_count; i++) {
    const struct tally *tally = &builder->tallies[i];
    report->rows[i].flat = tally->flat;
    report->rows[i].cum = tally->cum;
    report->rows[i].flat_error = hp_sampling_error(&tally->flat_variance);
    report->rows[i].cum_error = hp_sampling_error(&tally->cum_variance);
  }
}

static int compare_rows(const void *a, const void *b) {
  const struct hp_report_row *x = *(const struct hp_report_row *const *)a, *y = *(const struct hp_report_row *const *)b;
  int64_t left = magnitude(x->flat), right = magnitude(y->flat);
  if (left != right) return left > right ? -1 : 1;
  left = magnitude(x->cum);
  right = magnitude(y->cum);
  if (left != right) return left > right ? -1 : 1;
  int order = strcmp(x->function, y->function);
  if (order == 0) order = strcmp(x->file, y->file);
  if (order == 0) order = (x->line > y->line) - (x->line < y->line);
  return order;
}

static int compare_edges(const void *a, const void *b) {
  const struct hp_report_edge *x = a, *y = b;
  if (x->caller != y->caller) return x->caller < y->caller ? -1 : 1;
  int64_t left = magnitude(x->value), right = magnitude(y->value);
  if (left != right) return left > right ? -1 : 1;
  return (x->callee > y->callee) - (x->callee < y->callee);
}

static int compare_edges_by_callee(const void *a, const void *b, void *context) {
  const struct hp_report_edge *edges = context;
  const struct hp_report_edge *x = &edges[*(const uint32_t *)a], *y = &edges[*(const uint32_t *)b];
  if (x->callee != y->callee) return x->callee < y->callee ? -1 : 1;
  int64_t left = magnitude(x->value), right = magnitude(y->value);
  if (left != right) return left > right ? -1 : 1;
  return (x->caller > y->caller) - (x->caller < y->caller);
}

static void sort_edges(struct hp_report *report) {
  size_t count = report->edge_count;
  report->edges_by_callee = hp_alloc(count * sizeof *report->edges_by_callee);
  if (count == 0) {
    report->edges = hp_alloc(0); /* so that the searches below add to no null pointer */
    return;
  }
  if (count != 0) qsort(report->edges, count, sizeof *report->edges, compare_edges);
  for (size_t i = 0; i < count; i++) report->edges_by_callee[i] = (uint32_t)i;
  qsort_r(report->edges_by_callee, count, sizeof *report->edges_by_callee, compare_edges_by_callee, report->edges);
}

const struct hp_report_edge *hp_report_callees(const struct hp_report *report, uint32_t row, size_t *count) {
  size_t low = 0, high = report->edge_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (report->edges[middle].caller < row)
      low = middle + 1;
    else
      high = middle;
  }
  for (*count = 0; low + *count < report->edge_count && report->edges[low + *count].caller == row;) ++*count;
  return report->edges + low;
}

const uint32_t *hp_report_callers(const struct hp_report *report, uint32_t row, size_t *count) {
  const uint32_t *order = report->edges_by_callee;
  size_t low = 0, high = report->edge_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (report->edges[order[middle]].callee < row)
      low = middle + 1;
    else
      high = middle;
  }
  for (*count = 0; low + *count < report->edge_count && report->edges[order[low + *count]].callee == row;) ++*count;
  return order + low;
}

/* Sorts the rows and carries every reference to them along. */
static void sort_rows(struct hp_report *report, const struct hp_profile *profile) {
  size_t count = report->row_count;
  const struct hp_report_row **order = hp_alloc(count * sizeof *order);
  struct hp_report_row *sorted = hp_alloc(count * sizeof *sorted);
  uint32_t *place = hp_alloc(count * sizeof *place);
  for (size_t i = 0; i < count; i++) order[i] = &report->rows[i];
  if (count != 0) qsort(order, count, sizeof *order, compare_rows);
  for (size_t i = 0; i < count; i++) {
    sorted[i] = *order[i];
    place[order[i] - report->rows] = (uint32_t)i;
  }
  free(report->rows);
  report->rows = sorted;
  for (size_t i = 0; i < profile->location_count; i++) {
    const struct hp_location *location = &profile->locations[i];
    if (report->location_rows[i] != HP_NONE) report->location_rows[i] = place[report->location_rows[i]];
    for (uint32_t l = location->first_line; l < location->first_line + location->line_count; l++)
      report->line_rows[l] = place[report->line_rows[l]];
  }
  for (size_t i = 0; i < report->edge_count; i++) {
    report->edges[i].caller = place[report->edges[i].caller];
    report->edges[i].callee = place[report->edges[i].callee];
  }
  sort_edges(report);
  free(order);
  free(place);
}

/* The names of the columns, for the sentence about one that is not there. */
static int fail_type(const struct hp_profile *profile, const char *type, struct hp_error *error) {
  char names[256] = "";
  size_t used = 0;
  for (size_t i = 0; i < profile->type_count && used < sizeof names - 1; i++) {
    int count = snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                         hp_profile_text(profile, profile->types[i].type));
    if (count > 0) used += (size_t)count;
  }
  return hp_error_set(error, "no sample type %s; the profile has %s", type, names);
}

int hp_report_build(const struct hp_profile *profile, const struct hp_report_options *options, struct hp_report *out,
                    struct hp_error *error) {
  uint32_t type = hp_profile_type_find(profile, options->type);
  if (type == HP_NONE) return fail_type(profile, options->type, error);
  struct hp_filter *filter = hp_filter_new(profile, options->focus, options->ignore, error);
  if (filter == NULL) return -1;
  *out = (struct hp_report){.type = type,
                            .type_name = hp_profile_text(profile, profile->types[type].type),
                            .unit = hp_profile_text(profile, profile->types[type].unit)};
  struct builder builder = {.profile = profile, .options = options, .report = out};
  find_rows(&builder);
  builder.tallies = hp_alloc_zeroed(out->row_count, sizeof *builder.tallies);
  sum_up(&builder, filter);
  sort_rows(out, profile);
  struct owned_text *owned = hp_alloc(sizeof *owned);
  *owned = (struct owned_text){builder.texts, builder.text_count};
  out->owned_text = owned;
  hp_filter_free(filter);
  free(builder.slots);
  free(builder.tallies);
  free(builder.edge_seen);
  hp_id_map_free(&builder.edges);
  return 0;
}

void hp_report_free(struct hp_report *report) {
  struct owned_text *owned = report->owned_text;
  for (size_t i = 0; owned != NULL && i < owned->count; i++) free(owned->texts[i]);
  if (owned != NULL) free(owned->texts);
  free(owned);
  free(report->rows);
  free(report->edges);
  free(report->edges_by_callee);
  free(report->line_rows);
  free(report->location_rows);
  *report = (struct hp_report){0};
}
