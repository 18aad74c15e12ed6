/* SPDX-License-Identifier: MIT
 * trend_series.c - see trend_series.h. Stacks are kept as paths of a tree (view_tree.h) over places in the binaries; the
 * node of a stack's leaf gives its number. Columns are as long as the stacks known when their dump was read: what came later
 * was 0 then.
 */
#include "trend_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli_memory.h"
#include "frame_filter.h"
#include "id_map.h"
#include "out_template.h"
#include "profile_origin.h"
#include "profile_reader.h"
#include "sampling_error.h"
#include "symbolize.h"
#include "view_tree.h"

struct builder {
  struct hp_trend *trend;
  struct hp_view_frames *frames;
  const struct hp_trend_options *options;
  struct hp_profile *places; /* a place in a binary is a function here: name = file, file = build id, start_line = offset */
  struct hp_view_tree tree;  /* over places, leaf first */
  struct hp_id_map stack_of_node;
  struct hp_origins *origins;
  size_t row_capacity, frame_capacity;
  uint32_t *place_of_location; /* of the profile being read */
};

static uint32_t place_of(struct builder *builder, const struct hp_profile *profile, const struct hp_view_ids *ids,
                         size_t index) {
  const struct hp_location *location = &profile->locations[index];
  struct hp_function place = {.start_line = (int64_t)location->address};
  if (location->mapping != HP_NONE) {
    const struct hp_mapping *mapping = &profile->mappings[location->mapping];
    const char *build_id = hp_profile_text(profile, mapping->build_id);
    place.file = hp_profile_intern(builder->places, build_id);
    if (build_id[0] == '\0') place.name = hp_profile_intern(builder->places, hp_profile_text(profile, mapping->file));
    place.start_line = (int64_t)(location->address - mapping->start + mapping->offset);
  }
  if (location->address == 0) { /* a pseudo frame: known by its name */
    uint32_t frame = location->line_count == 0 ? ids->of_location[index] : ids->of_line[location->first_line];
    place.name = hp_profile_intern(builder->places, hp_view_text(builder->frames, builder->frames->frames[frame].name));
    place.start_line = -1;
  }
  return hp_profile_intern_function(builder->places, &place);
}

struct listing {
  struct builder *builder;
  size_t first;
};

static bool list_frame(void *context, uint32_t frame) {
  struct listing *listing = context;
  struct hp_trend *trend = listing->builder->trend;
  hp_array_reserve(&trend->frame_list, &listing->builder->frame_capacity, trend->frame_count + 1, sizeof *trend->frame_list);
  trend->frame_list[trend->frame_count++] = frame;
  return true;
}

/* The stack's number; a new one gets a row, with its frames in words, leaf first. */
static size_t stack_of(struct builder *builder, const struct hp_profile *profile, const struct hp_view_ids *ids,
                       size_t sample) {
  const struct hp_sample *stack = &profile->samples[sample];
  uint32_t node = 0;
  for (uint32_t i = 0; i < stack->location_count; i++)
    node = hp_view_tree_child(&builder->tree, node,
                              builder->place_of_location[profile->stack_locations[stack->first_location + i]]);
  uint32_t known = hp_id_map_find(&builder->stack_of_node, node);
  if (known != UINT32_MAX) return known;
  struct hp_trend *trend = builder->trend;
  struct listing listing = {builder, trend->frame_count};
  hp_view_stack_walk(profile, ids, sample, list_frame, &listing);
  hp_array_reserve(&trend->rows, &builder->row_capacity, trend->row_count + 1, sizeof *trend->rows);
  struct hp_trend_row *row = &trend->rows[trend->row_count];
  *row = (struct hp_trend_row){.stack = trend->row_count, .first_frame = listing.first, .age_nanos = -1};
  row->frame_count = (uint32_t)(trend->frame_count - listing.first);
  for (size_t a = listing.first, b = trend->frame_count; a + 1 < b; a++, b--) { /* root first -> leaf first */
    uint32_t swap = trend->frame_list[a];
    trend->frame_list[a] = trend->frame_list[b - 1];
    trend->frame_list[b - 1] = swap;
  }
  hp_id_map_add(&builder->stack_of_node, node, (uint32_t)trend->row_count);
  return trend->row_count++;
}

int64_t hp_trend_parse_age(const char *label) {
  static const struct {
    const char *unit;
    double nanos;
  } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"min", 60e9}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
  if (strpbrk(label, "0123456789") == NULL) return -1;
  if (label[0] == '<') return 0;
  const char *number = strpbrk(label, "0123456789");
  char *end;
  double value = strtod(number, &end);
  while (*end == ' ') end++;
  if (*end == '-' || *end == '.') { /* "1-10s": the unit stands after the second number */
    end += strspn(end, "-. 0123456789");
  }
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strncmp(end, units[i].unit, strlen(units[i].unit)) == 0 && value * units[i].nanos < 0x1p63)
      return (int64_t)(value * units[i].nanos);
  return -1;
}

static void note_age(struct hp_trend_row *row, const struct hp_profile *profile, size_t sample) {
  const struct hp_sample *stack = &profile->samples[sample];
  for (uint32_t i = stack->first_label; i < stack->first_label + stack->label_count; i++) {
    const struct hp_label *label = &profile->labels[i];
    if (label->str == 0 || strcmp(hp_profile_text(profile, label->key), "age") != 0) continue;
    const char *text = hp_profile_text(profile, label->str);
    int64_t nanos = hp_trend_parse_age(text);
    if (nanos < 0 || strlen(text) >= sizeof row->age || profile->time_nanos < row->age_time_nanos) continue;
    if (profile->time_nanos == row->age_time_nanos && nanos <= row->age_nanos) continue;
    row->age_nanos = nanos;
    row->age_time_nanos = profile->time_nanos;
    memcpy(row->age, text, strlen(text) + 1);
  }
}

static void add_sample(struct builder *builder, const struct hp_profile *profile, const struct hp_view_ids *ids,
                       size_t sample, uint32_t bytes_column, uint32_t objects_column, struct hp_trend_dump *dump) {
  int64_t bytes = hp_profile_value(profile, sample, bytes_column);
  int64_t objects = objects_column == HP_NONE ? 0 : hp_profile_value(profile, sample, objects_column);
  if (bytes == 0 && objects == 0) return;
  size_t stack = stack_of(builder, profile, ids, sample), known = builder->trend->row_count;
  if (known > dump->filled) {
    size_t room = dump->filled;
    double **columns[] = {&dump->bytes, &dump->objects, &dump->variance, &dump->one_sample};
    size_t want = known < 64 ? 64 : known * 2;
    for (size_t c = 0; c < 4; c++) {
      *columns[c] = hp_realloc(*columns[c], want, sizeof(double));
      memset(*columns[c] + room, 0, (want - room) * sizeof(double));
    }
    dump->filled = want;
  }
  struct hp_sampling_variance variance = {0, dump->one_sample[stack]};
  hp_sampling_variance_add(&variance, NULL, profile->period, objects, bytes);
  dump->bytes[stack] += (double)bytes;
  dump->objects[stack] += (double)objects;
  dump->variance[stack] += variance.sum;
  dump->one_sample[stack] = variance.one_sample_max;
  note_age(&builder->trend->rows[stack], profile, sample);
}

static int add_profile(struct builder *builder, const struct hp_profile *profile, struct hp_trend_dump *dump,
                       struct hp_error *error) {
  uint32_t bytes_column = hp_profile_type_find(profile, "inuse_space");
  if (bytes_column == HP_NONE) return hp_error_set(error, "%s: has no sample type inuse_space", dump->path);
  if (profile->time_nanos <= 0) return hp_error_set(error, "%s: does not say when it was taken (time_nanos)", dump->path);
  struct hp_view_ids ids;
  if (hp_view_frames_add(builder->frames, profile, &ids, error) != 0) return -1;
  struct hp_filter *filter = NULL;
  if (builder->options->focus != NULL || builder->options->ignore != NULL) {
    filter = hp_filter_new(profile, builder->options->focus, builder->options->ignore, error);
    if (filter == NULL) {
      hp_view_ids_free(&ids);
      return -1;
    }
  }
  dump->time_nanos = profile->time_nanos;
  dump->period = profile->period;
  dump->origin = hp_origins_add(builder->origins, profile, dump->path);
  for (size_t i = 0; i < profile->sample_count; i++) dump->total += (double)hp_profile_value(profile, i, bytes_column);
  builder->place_of_location = hp_alloc(profile->location_count * sizeof *builder->place_of_location);
  for (size_t i = 0; i < profile->location_count; i++) builder->place_of_location[i] = place_of(builder, profile, &ids, i);
  uint32_t objects_column = hp_profile_type_partner(profile, bytes_column);
  for (size_t i = 0; i < profile->sample_count; i++)
    if (filter == NULL || hp_filter_passes(filter, i))
      add_sample(builder, profile, &ids, i, bytes_column, objects_column, dump);
  free(builder->place_of_location);
  hp_filter_free(filter);
  hp_view_ids_free(&ids);
  return 0;
}

static int read_dump(struct builder *builder, struct hp_trend_dump *dump, struct hp_error *error) {
  struct hp_profile *profile;
  if (hp_profile_read(dump->path, &profile, error) != 0) return -1;
  struct hp_symbolize_options symbolize = {.debug_dirs = builder->options->debug_dirs};
  hp_symbolize_for_report(profile, &symbolize, builder->frames->by_line);
  hp_profile_drop_frames(profile);
  int result = add_profile(builder, profile, dump, error);
  if (result == 0 && builder->trend->program[0] == '\0' && profile->mapping_count != 0) {
    free(builder->trend->program);
    builder->trend->program = hp_strdup(hp_profile_text(profile, profile->mappings[0].file));
  }
  hp_profile_free(profile);
  return result;
}

static int compare_times(const void *a, const void *b) {
  int64_t x = ((const struct hp_trend_dump *)a)->time_nanos, y = ((const struct hp_trend_dump *)b)->time_nanos;
  return x < y ? -1 : x > y;
}

static double column_value(const double *column, size_t filled, size_t stack) { return stack < filled ? column[stack] : 0; }

double hp_trend_bytes(const struct hp_trend *trend, const struct hp_trend_row *row, size_t dump) {
  return column_value(trend->dumps[dump].bytes, trend->dumps[dump].filled, row->stack);
}

/* A stack's labelled rows may sum up to more than fits, in a file that somebody else wrote. */
static int64_t whole(double value) { return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value; }

int64_t hp_trend_whole_bytes(const struct hp_trend *trend, const struct hp_trend_row *row, size_t dump) {
  return whole(hp_trend_bytes(trend, row, dump));
}

double hp_trend_error(const struct hp_trend *trend, const struct hp_trend_row *row, size_t dump) {
  const struct hp_trend_dump *at = &trend->dumps[dump];
  struct hp_sampling_variance variance = {column_value(at->variance, at->filled, row->stack),
                                          column_value(at->one_sample, at->filled, row->stack)};
  return hp_sampling_error(&variance);
}

static int compare_p(const void *a, const void *b) {
  double p = (*(struct hp_trend_fit *const *)a)->p_value, q = (*(struct hp_trend_fit *const *)b)->p_value;
  return p < q ? -1 : p > q;
}

static int compare_rows(const void *a, const void *b) {
  const struct hp_trend_row *x = a, *y = b;
  int order = hp_trend_fit_compare(&x->fit, &y->fit);
  return order != 0 ? order : x->stack < y->stack ? -1 : x->stack > y->stack;
}

static void fit_all(struct hp_trend *trend) {
  size_t m = trend->dump_count;
  double *hours = hp_alloc_zeroed(m * 3, sizeof *hours), *bytes = hours + m, *objects = bytes + m;
  int64_t period = 0;
  for (size_t d = 0; d < m; d++) {
    hours[d] = (double)(trend->dumps[d].time_nanos - trend->dumps[0].time_nanos) / 3600e9;
    if (trend->dumps[d].period > period) period = trend->dumps[d].period;
  }
  struct hp_trend_fit **by_p = hp_alloc_zeroed(trend->row_count, sizeof *by_p);
  for (size_t i = 0; i < trend->row_count; i++) {
    struct hp_trend_row *row = &trend->rows[i];
    for (size_t d = 0; d < m; d++) {
      bytes[d] = hp_trend_bytes(trend, row, d);
      objects[d] = column_value(trend->dumps[d].objects, trend->dumps[d].filled, row->stack);
    }
    hp_trend_fit(&(struct hp_trend_points){hours, bytes, objects, m, period}, &row->fit);
    if (row->age_time_nanos < trend->dumps[m - 1].time_nanos) row->age_nanos = -1, row->age[0] = '\0';
    by_p[i] = &row->fit;
  }
  if (trend->row_count != 0) qsort(by_p, trend->row_count, sizeof *by_p, compare_p);
  trend->tested = hp_trend_correct(by_p, trend->row_count);
  if (trend->row_count != 0) qsort(trend->rows, trend->row_count, sizeof *trend->rows, compare_rows);
  free(by_p);
  free(hours);
}

/* Whether the last dump (by time) was taken when the program had freed what it held: less than half in use of what was before,
 * by a fall more than twice any earlier one, in the same process. A series that shrinks or goes up and down has had such falls. */
static bool is_collapsed(const struct hp_trend *trend) {
  size_t count = trend->dump_count;
  if (count <= HP_TREND_DUMPS_MIN) return false;
  const struct hp_trend_dump *last = &trend->dumps[count - 1], *before = last - 1;
  if (last->origin != before->origin || last->total >= before->total / 2) return false;
  double fall_max = 0;
  for (size_t d = 1; d + 1 < count; d++) fall_max = fmax(fall_max, trend->dumps[d - 1].total - trend->dumps[d].total);
  return before->total - last->total > 2 * fall_max;
}

/* The files that can be read again of the process with the most, the later one of two with as many, *kept of them; null: they are all
 * of one, or too few. */
static char **files_of_one(const struct hp_trend *trend, const struct hp_origins *origins, size_t *kept) {
  const struct hp_origin *most = NULL;
  size_t count = trend->dump_count + (trend->left_out != NULL);
  for (size_t i = 0; i < origins->count; i++) {
    const struct hp_origin *origin = &origins->list[i];
    if (most == NULL || origin->profile_count > most->profile_count ||
        (origin->profile_count == most->profile_count && origin->last_time_nanos > most->last_time_nanos))
      most = origin;
  }
  if (origins->count < 2 || most->profile_count < HP_TREND_DUMPS_MIN) return NULL;
  char **paths = hp_alloc(count * sizeof *paths);
  *kept = 0;
  for (size_t d = 0; d < count; d++) {
    struct stat status;
    if (trend->dumps[d].origin != (uint32_t)(most - origins->list)) continue;
    if (stat(trend->dumps[d].path, &status) != 0 || !S_ISREG(status.st_mode)) break;
    paths[(*kept)++] = (char *)trend->dumps[d].path;
  }
  if (*kept == most->profile_count) return paths;
  free(paths);
  return NULL;
}

static int build(char *const *paths, size_t count, const struct hp_trend_options *options, struct hp_view_frames *frames,
                 struct hp_origins *origins, struct hp_trend *out, struct hp_error *error) {
  memset(out, 0, sizeof *out);
  out->program = hp_strdup("");
  out->dumps = hp_alloc_zeroed(count, sizeof *out->dumps);
  out->dump_count = count;
  struct builder builder = {
      .trend = out, .frames = frames, .options = options, .origins = origins, .places = hp_profile_new()};
  hp_view_tree_init(&builder.tree);
  int result = 0;
  for (size_t i = 0; i < count && result == 0; i++) {
    out->dumps[i].path = paths[i];
    result = read_dump(&builder, &out->dumps[i], error);
  }
  if (result == 0) {
    qsort(out->dumps, count, sizeof *out->dumps, compare_times);
    out->process_count = origins->count;
    if (is_collapsed(out)) out->left_out = &out->dumps[--out->dump_count];
    fit_all(out);
  } else {
    hp_trend_free(out);
  }
  hp_profile_free(builder.places);
  hp_view_tree_free(&builder.tree);
  hp_id_map_free(&builder.stack_of_node);
  return result;
}

/* Whose a file is stands at its end, so all are read before one process can be chosen, and its files then again. */
static int build_of_one(char *const *paths, size_t count, const struct hp_trend_options *options,
                        struct hp_view_frames *frames, struct hp_trend *out, struct hp_error *error) {
  struct hp_origins origins = {0};
  int result = build(paths, count, options, frames, &origins, out, error);
  size_t kept;
  char **of_one = result == 0 && !options->all_processes ? files_of_one(out, &origins, &kept) : NULL;
  if (of_one != NULL) {
    size_t process_count = origins.count;
    hp_trend_free(out);
    hp_origins_free(&origins);
    result = build(of_one, kept, options, frames, &origins, out, error);
    if (result == 0) out->process_count = process_count;
    if (result == 0) out->files_of_others = count - kept;
    free(of_one);
  }
  hp_origins_free(&origins);
  return result;
}

int hp_trend_build(char *const *paths, size_t count, const struct hp_trend_options *options, struct hp_view_frames *frames,
                   struct hp_trend *out, struct hp_error *error) {
  if (count < HP_TREND_DUMPS_MIN) return hp_error_set(error, "a trend needs at least %d profiles", HP_TREND_DUMPS_MIN);
  if (count > HP_TREND_DUMPS_MAX)
    return hp_error_set(error, "%zu profiles are more than a trend takes (%d)", count, HP_TREND_DUMPS_MAX);
  char **others = hp_alloc(count * sizeof *others);
  size_t other_count = 0;
  for (size_t i = 0; i < count; i++)
    if (!hp_out_is_peak(paths[i])) others[other_count++] = paths[i];
  bool has_enough = other_count >= HP_TREND_DUMPS_MIN;
  int result = build_of_one(has_enough ? others : paths, has_enough ? other_count : count, options, frames, out, error);
  if (result == 0 && has_enough) out->files_of_peaks = count - other_count;
  free(others);
  return result;
}

void hp_trend_free(struct hp_trend *trend) {
  for (size_t i = 0; i < trend->dump_count + (trend->left_out != NULL); i++) {
    free(trend->dumps[i].bytes);
    free(trend->dumps[i].objects);
    free(trend->dumps[i].variance);
    free(trend->dumps[i].one_sample);
  }
  free(trend->dumps);
  free(trend->rows);
  free(trend->frame_list);
  free(trend->program);
  memset(trend, 0, sizeof *trend);
}
