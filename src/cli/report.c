/* SPDX-License-Identifier: MIT
 * report.c - see report.h. Which row a frame belongs to is report_rows.c's; here rows are numbers, and summing up is array work.
 *
 * In passes, each over as few arrays as it can, since with more rows than fit into the caches that is where the time goes:
 *   find_rows      which row a frame belongs to; in a profile with many lines in a thread beside the next two
 *   weigh_stacks   which stacks count, and their errors
 *   sum_leaves     flat, of every location; carry_leaves, of every row
 *   choose_rows    which rows can be among the first: flat comes first in the order, so that needs no cum
 *   sum_frames     cum and the errors, of these rows; that the others were seen is only marked
 *   order_rows, fill_rows
 * A row counts once a stack however often it recurs: it carries the number of the last stack it was seen in.
 */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "frame_filter.h"
#include "id_map.h"
#include "report_rows.h"
#include "sampling_error.h"
#include "side_thread.h"

/* What counting a frame touches, in half a cache line. */
struct tally {
  struct hp_sampling_variance variance;
  int64_t cum;
  uint32_t seen; /* the last sample counted, plus one */
};

enum { MARK_WANTED = 1, MARK_SEEN = 2, LINES_ASIDE = 8192 /* so many are worth the start of a thread */ };

struct builder {
  const struct hp_profile *profile;
  const struct hp_report_options *options;
  struct hp_report *report;
  struct hp_report_rows *rows;
  /* By sample. */
  bool *counted;
  struct hp_sampling_variance *variances; /* null: no errors */
  bool has_growth, has_shrinkage;         /* values of both signs: a row that was seen may come to 0 */
  int64_t *leaves;                        /* by location: flat of the leaves there */
  /* By row. */
  int64_t *flats;
  struct hp_sampling_variance *flat_variances;
  struct tally *tallies;
  uint8_t *marks; /* null: every row is wanted */
  /* Caller << 32 | callee to index. */
  struct hp_id_map edges;
  size_t edge_capacity;
  uint32_t *edge_seen;
  size_t edge_seen_capacity;
};

static int64_t add_saturated(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t magnitude(int64_t value) { return value >= 0 ? value : value == INT64_MIN ? INT64_MAX : -value; }

static void count_edge(struct builder *builder, uint32_t caller, uint32_t callee, uint32_t sample, int64_t value) {
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

static void weigh_stacks(struct builder *builder, const struct hp_filter *filter) {
  const struct hp_profile *profile = builder->profile;
  struct hp_report *report = builder->report;
  uint32_t partner = hp_profile_error_partner(profile, report->type);
  struct hp_sampling_variance total = {0, 0};
  report->has_error = partner != HP_NONE;
  builder->counted = hp_alloc_zeroed(profile->sample_count, sizeof *builder->counted);
  if (report->has_error) builder->variances = hp_alloc(profile->sample_count * sizeof *builder->variances);
  for (size_t i = 0; i < profile->sample_count; i++) {
    int64_t value = hp_profile_value(profile, i, report->type);
    report->total = add_saturated(report->total, magnitude(value));
    if (value == 0 || !hp_filter_passes(filter, i)) continue;
    builder->counted[i] = true;
    *(value > 0 ? &builder->has_growth : &builder->has_shrinkage) = true;
    report->shown_total = add_saturated(report->shown_total, value);
    if (!report->has_error) continue;
    builder->variances[i] = sample_variance(builder, i, partner);
    hp_sampling_variance_merge(&total, &builder->variances[i]);
  }
  report->total_error = hp_sampling_error(&total);
}

/* Flat by location; rows need not be known yet. */
static void sum_leaves(struct builder *builder) {
  const struct hp_profile *profile = builder->profile;
  builder->leaves = hp_alloc_cleared(profile->location_count, sizeof *builder->leaves);
  for (size_t i = 0; i < profile->sample_count; i++) {
    const struct hp_sample *sample = &profile->samples[i];
    if (!builder->counted[i] || sample->location_count == 0) continue;
    int64_t *leaf = &builder->leaves[profile->stack_locations[sample->first_location]];
    *leaf = add_saturated(*leaf, hp_profile_value(profile, i, builder->report->type));
  }
}

static void carry_leaves(struct builder *builder) {
  const struct hp_profile *profile = builder->profile;
  builder->flats = hp_alloc_cleared(builder->rows->count, sizeof *builder->flats);
  for (size_t i = 0; i < profile->location_count; i++) {
    if (builder->leaves[i] == 0) continue;
    uint32_t row = builder->rows->of_location[i];
    if (row == HP_NONE) row = builder->rows->of_line[profile->locations[i].first_line];
    builder->flats[row] = add_saturated(builder->flats[row], builder->leaves[i]);
  }
}

struct walk {
  int64_t value;
  const struct hp_sampling_variance *variance; /* null: no errors */
  uint32_t sample;
  uint32_t callee; /* the row beneath, HP_NONE at the leaf */
};

static inline void count_frame(struct builder *builder, struct walk *walk, uint32_t row) {
  struct tally *tally = &builder->tallies[row];
  if (walk->callee == HP_NONE && walk->variance != NULL)
    hp_sampling_variance_merge(&builder->flat_variances[row], walk->variance);
  if (walk->callee != HP_NONE && builder->options->edges) count_edge(builder, row, walk->callee, walk->sample, walk->value);
  walk->callee = row;
  if (tally->seen == walk->sample + 1) return;
  tally->seen = walk->sample + 1;
  tally->cum = add_saturated(tally->cum, walk->value);
  if (walk->variance != NULL) hp_sampling_variance_merge(&tally->variance, walk->variance);
}

/* The frames of a location: one nearly always. */
static inline void count_location(struct builder *builder, struct walk *walk, uint32_t index) {
  uint32_t only = builder->rows->of_location[index];
  if (only != HP_NONE) {
    count_frame(builder, walk, only);
    return;
  }
  const struct hp_location *location = &builder->profile->locations[index];
  for (uint32_t l = location->first_line; l < location->first_line + location->line_count; l++)
    count_frame(builder, walk, builder->rows->of_line[l]);
}

/* Marks carried between rows and their locations: WANTED from a row to every location with a frame of it, SEEN back. */
static void carry_marks(const struct builder *builder, uint8_t *of_locations, bool to_locations) {
  const struct hp_profile *profile = builder->profile;
  const struct hp_report_rows *rows = builder->rows;
  for (size_t i = 0; i < profile->location_count; i++) {
    const struct hp_location *location = &profile->locations[i];
    uint32_t only = rows->of_location[i], count = only != HP_NONE ? 1 : location->line_count;
    for (uint32_t l = 0; l < count; l++) {
      uint8_t *of_row = &builder->marks[only != HP_NONE ? only : rows->of_line[location->first_line + l]];
      *(to_locations ? &of_locations[i] : of_row) |= to_locations ? *of_row : of_locations[i] & MARK_SEEN;
    }
  }
}

static void sum_frames(struct builder *builder) {
  const struct hp_profile *profile = builder->profile;
  uint8_t *marks = NULL; /* by location */
  builder->tallies = hp_alloc_zeroed(builder->rows->count, sizeof *builder->tallies);
  if (builder->variances != NULL)
    builder->flat_variances = hp_alloc_zeroed(builder->rows->count, sizeof *builder->flat_variances);
  if (builder->marks != NULL) {
    marks = hp_alloc_cleared(profile->location_count, sizeof *marks);
    carry_marks(builder, marks, true);
  }
  for (size_t i = 0; i < profile->sample_count; i++) {
    if (!builder->counted[i]) continue;
    const struct hp_sample *sample = &profile->samples[i];
    struct walk walk = {.value = hp_profile_value(profile, i, builder->report->type),
                        .variance = builder->variances != NULL ? &builder->variances[i] : NULL,
                        .sample = (uint32_t)i,
                        .callee = HP_NONE};
    for (uint32_t k = 0; k < sample->location_count; k++) {
      uint32_t location = profile->stack_locations[sample->first_location + k];
      uint8_t mark = MARK_WANTED;
      if (marks != NULL) {
        mark = marks[location];
        marks[location] = mark | MARK_SEEN;
      }
      if ((mark & MARK_WANTED) != 0) count_location(builder, &walk, location);
      if (marks != NULL) walk.callee = 0; /* no leaf any more; the row itself matters to edges only, which want every row */
    }
  }
  if (marks != NULL) carry_marks(builder, marks, false);
  free(marks);
}

/* Row numbers in the order of the report. The figure that nearly always decides is beside the number. */
struct place {
  int64_t flat; /* magnitude */
  uint32_t row;
};

static int compare_places(const void *a, const void *b, void *context) {
  const struct place *x = a, *y = b;
  const struct builder *builder = context;
  if (x->flat != y->flat) return x->flat > y->flat ? -1 : 1;
  if (builder->tallies != NULL) { /* null as long as rows are chosen by flat */
    int64_t left = magnitude(builder->tallies[x->row].cum), right = magnitude(builder->tallies[y->row].cum);
    if (left != right) return left > right ? -1 : 1;
  }
  struct hp_report_row p = hp_report_rows_name(builder->rows, x->row), q = hp_report_rows_name(builder->rows, y->row);
  int order = strcmp(p.function, q.function);
  if (order == 0) order = strcmp(p.file, q.file);
  if (order == 0) order = (p.line > q.line) - (p.line < q.line);
  return order;
}

static int compare_places_reversed(const void *a, const void *b, void *context) { return compare_places(b, a, context); }

/* Puts the first `most` of the places in front, in no order: a heap of the best so far with the last of them on top, which gives way to
 * each that comes before it. */
static void select_first(const struct builder *builder, struct place *places, size_t count, size_t most) {
  qsort_r(places, most, sizeof *places, compare_places_reversed, (void *)builder); /* the last first: that is such a heap */
  for (size_t i = most; i < count; i++) {
    struct place place = places[i];
    if (compare_places(&place, &places[0], (void *)builder) >= 0) continue;
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < most; at = child) {
      if (child + 1 < most && compare_places(&places[child + 1], &places[child], (void *)builder) > 0) child++;
      if (compare_places(&places[child], &place, (void *)builder) < 0) break;
      places[at] = places[child];
    }
    places[at] = place;
  }
}

/* Wanted are the rows with as much flat as the last of the first few, if flat alone tells which these are. */
static void choose_rows(struct builder *builder) {
  size_t most = builder->options->first_rows, count = 0, rows = builder->rows->count;
  if (most == 0 || (builder->has_growth && builder->has_shrinkage)) return;
  struct place *places = hp_alloc(rows * sizeof *places);
  for (uint32_t row = 0; row < rows; row++)
    if (builder->flats[row] != 0) places[count++] = (struct place){magnitude(builder->flats[row]), row};
  if (count >= most) {
    select_first(builder, places, count, most);
    int64_t least = places[0].flat;
    builder->marks = hp_alloc_cleared(rows, sizeof *builder->marks);
    for (uint32_t row = 0; row < rows; row++)
      if (magnitude(builder->flats[row]) >= least) builder->marks[row] = MARK_WANTED;
  }
  free(places);
}

/* All rows in order, or the first few of those that have any figure; *count of them. */
static struct place *order_rows(const struct builder *builder, size_t *count) {
  size_t most = builder->options->first_rows;
  struct place *places = hp_alloc(builder->rows->count * sizeof *places);
  *count = 0;
  for (uint32_t row = 0; row < builder->rows->count; row++) {
    bool is_wanted = builder->marks == NULL || (builder->marks[row] & MARK_WANTED) != 0;
    bool is_zero = builder->marks != NULL ? (builder->marks[row] & MARK_SEEN) == 0
                                          : builder->flats[row] == 0 && builder->tallies[row].cum == 0;
    if (!is_zero) builder->report->nonzero_count++;
    if (most == 0 || (is_wanted && !is_zero)) places[(*count)++] = (struct place){magnitude(builder->flats[row]), row};
  }
  if (most != 0 && *count > most) {
    select_first(builder, places, *count, most);
    *count = most;
  }
  if (*count != 0) qsort_r(places, *count, sizeof *places, compare_places, (void *)builder);
  return places;
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

static void fill_rows(struct builder *builder, const struct place *places, size_t count) {
  struct hp_report *report = builder->report;
  report->rows = hp_alloc(count * sizeof *report->rows);
  report->row_count = count;
  for (size_t i = 0; i < count; i++) {
    const struct tally *tally = &builder->tallies[places[i].row];
    struct hp_report_row *row = &report->rows[i];
    *row = hp_report_rows_name(builder->rows, places[i].row);
    row->flat = builder->flats[places[i].row];
    row->cum = tally->cum;
    if (!report->has_error) continue;
    row->flat_error = hp_sampling_error(&builder->flat_variances[places[i].row]);
    row->cum_error = hp_sampling_error(&tally->variance);
  }
}

/* Every reference to a row follows it to its place. */
static void renumber(struct builder *builder, const struct place *places, size_t count) {
  const struct hp_profile *profile = builder->profile;
  struct hp_report *report = builder->report;
  uint32_t *place_of = hp_alloc(count * sizeof *place_of);
  for (size_t i = 0; i < count; i++) place_of[places[i].row] = (uint32_t)i;
  report->line_rows = builder->rows->of_line;
  report->location_rows = builder->rows->of_location;
  for (size_t i = 0; i < profile->location_count; i++) {
    const struct hp_location *location = &profile->locations[i];
    if (report->location_rows[i] != HP_NONE) report->location_rows[i] = place_of[report->location_rows[i]];
    for (uint32_t l = location->first_line; l < location->first_line + location->line_count; l++)
      report->line_rows[l] = place_of[report->line_rows[l]];
  }
  for (size_t i = 0; i < report->edge_count; i++) {
    report->edges[i].caller = place_of[report->edges[i].caller];
    report->edges[i].callee = place_of[report->edges[i].callee];
  }
  free(place_of);
  sort_edges(report);
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

static void *find_rows(void *context) {
  const struct builder *builder = context;
  hp_report_rows_find(builder->rows, builder->profile, builder->options->by_line);
  return NULL;
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
  struct builder builder = {.profile = profile, .options = options, .report = out, .rows = hp_alloc(sizeof *builder.rows)};
  out->names = builder.rows;
  struct hp_side_thread side = {0};
  if (profile->line_count < LINES_ASIDE || !hp_side_thread_start(&side, find_rows, &builder)) find_rows(&builder);
  weigh_stacks(&builder, filter);
  sum_leaves(&builder);
  hp_side_thread_join(&side);
  carry_leaves(&builder);
  choose_rows(&builder);
  sum_frames(&builder);
  size_t count;
  struct place *places = order_rows(&builder, &count);
  fill_rows(&builder, places, count);
  if (options->first_rows == 0) renumber(&builder, places, count);
  hp_filter_free(filter);
  free(places);
  free(builder.tallies);
  free(builder.counted);
  free(builder.variances);
  free(builder.leaves);
  free(builder.flats);
  free(builder.flat_variances);
  free(builder.marks);
  free(builder.edge_seen);
  hp_id_map_free(&builder.edges);
  return 0;
}

const char *hp_report_portable_name(const char *function) {
  if (function[0] != '0' || function[1] != 'x') return function;
  size_t digits = strspn(function + 2, "0123456789abcdef");
  return function[2 + digits] == ' ' && function[3 + digits] != '\0' ? function + 3 + digits : function;
}

void hp_report_free(struct hp_report *report) {
  if (report->names != NULL) hp_report_rows_free(report->names);
  free(report->names);
  free(report->rows);
  free(report->edges);
  free(report->edges_by_callee);
  *report = (struct hp_report){0};
}
