/* SPDX-License-Identifier: MIT
 * merge.c - see merge.h.
 *
 * The sum is a model of its own. For each profile added, its strings, functions, mappings and locations are translated once
 * (arrays of indices, filled when first needed), then each stack is looked up by its translated locations and labels.
 */
#include "merge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "id_map.h"
#include "index_table.h"
#include "profile_reader.h"

struct hp_merge {
  struct hp_profile *sum;
  size_t profile_count;
  struct hp_id_map programs; /* by the string of their build id, else their file */
  uint32_t program_count;
  const char *first_name;
  struct hp_index_table mappings, locations, stacks;
  uint64_t seed;
};

/* The profile being added, and where its parts are in the sum (HP_NONE: not looked up yet). */
struct incoming {
  const struct hp_profile *profile;
  uint32_t *strings, *functions, *mappings, *locations, *types;
  uint32_t *stack; /* scratch */
  size_t stack_capacity;
  struct hp_label *labels; /* scratch */
  size_t labels_capacity;
  int64_t *values; /* scratch */
};

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9fb21c651e98df25u;
  return hash ^ hash >> 32;
}

struct hp_merge *hp_merge_new(void) {
  struct hp_merge *merge = hp_alloc_zeroed(1, sizeof *merge);
  merge->sum = hp_profile_new();
  merge->seed = (uintptr_t)merge->sum * 0x9e3779b97f4a7c15u; /* differs from run to run */
  return merge;
}

static uint32_t map_string(struct hp_merge *merge, struct incoming *in, uint32_t string) {
  uint32_t *mapped = &in->strings[string];
  if (*mapped == HP_NONE) *mapped = hp_profile_intern(merge->sum, hp_profile_text(in->profile, string));
  return *mapped;
}

static uint32_t map_function(struct hp_merge *merge, struct incoming *in, uint32_t function) {
  uint32_t *mapped = &in->functions[function];
  if (*mapped != HP_NONE) return *mapped;
  const struct hp_function *from = &in->profile->functions[function];
  struct hp_function to = {map_string(merge, in, from->name), map_string(merge, in, from->system_name),
                           map_string(merge, in, from->file), from->start_line};
  return *mapped = hp_profile_intern_function(merge->sum, &to);
}

static bool mapping_equal(const void *context, uint32_t index, const void *key) {
  const struct hp_merge *merge = context;
  const struct hp_mapping *known = &merge->sum->mappings[index], *wanted = key;
  if (known->offset != wanted->offset || known->build_id != wanted->build_id) return false;
  return known->build_id != 0 ||
         (known->file == wanted->file && known->limit - known->start == wanted->limit - wanted->start);
}

static uint32_t map_mapping(struct hp_merge *merge, struct incoming *in, uint32_t mapping) {
  uint32_t *mapped = &in->mappings[mapping];
  if (*mapped != HP_NONE) return *mapped;
  struct hp_mapping to = in->profile->mappings[mapping];
  to.file = map_string(merge, in, to.file);
  to.build_id = map_string(merge, in, to.build_id);
  uint64_t hash = mix(mix(merge->seed, to.offset), to.build_id != 0 ? to.build_id : (uint64_t)to.file << 32);
  size_t next = merge->sum->mapping_count;
  *mapped = hp_index_table_find_or_add(&merge->mappings, hash, mapping_equal, merge, &to, next);
  if (*mapped == next) return hp_profile_append_mapping(merge->sum, &to);
  struct hp_mapping *known = &merge->sum->mappings[*mapped];
  known->has_functions &= to.has_functions;
  known->has_filenames &= to.has_filenames;
  known->has_line_numbers &= to.has_line_numbers;
  known->has_inline_frames &= to.has_inline_frames;
  if (known->limit - known->start < to.limit - to.start) known->limit = known->start + (to.limit - to.start);
  return *mapped;
}

struct location_key {
  struct hp_location location;
  const struct hp_line *lines;
};

static bool location_equal(const void *context, uint32_t index, const void *key) {
  const struct hp_merge *merge = context;
  const struct hp_location *known = &merge->sum->locations[index];
  const struct location_key *wanted = key;
  if (known->address != wanted->location.address || known->mapping != wanted->location.mapping ||
      known->line_count != wanted->location.line_count || known->is_folded != wanted->location.is_folded)
    return false;
  for (uint32_t l = 0; l < known->line_count; l++) {
    const struct hp_line *a = &merge->sum->lines[known->first_line + l], *b = &wanted->lines[l];
    if (a->function != b->function || a->line != b->line || a->column != b->column) return false;
  }
  return true;
}

static uint32_t map_location(struct hp_merge *merge, struct incoming *in, uint32_t location) {
  uint32_t *mapped = &in->locations[location];
  if (*mapped != HP_NONE) return *mapped;
  struct location_key key = {.location = in->profile->locations[location]};
  if (key.location.mapping != HP_NONE) {
    uint64_t start = in->profile->mappings[key.location.mapping].start;
    key.location.mapping = map_mapping(merge, in, key.location.mapping);
    key.location.address += merge->sum->mappings[key.location.mapping].start - start;
  }
  uint64_t hash = mix(mix(merge->seed, key.location.address), key.location.mapping);
  struct hp_line *lines = hp_alloc(key.location.line_count * sizeof *lines);
  for (uint32_t l = 0; l < key.location.line_count; l++) {
    lines[l] = in->profile->lines[key.location.first_line + l];
    if (lines[l].function != HP_NONE) lines[l].function = map_function(merge, in, lines[l].function);
    hash = mix(mix(hash, lines[l].function), (uint64_t)lines[l].line);
  }
  key.lines = lines;
  size_t next = merge->sum->location_count;
  *mapped = hp_index_table_find_or_add(&merge->locations, hash, location_equal, merge, &key, next);
  if (*mapped == next) {
    key.location.first_line = (uint32_t)merge->sum->line_count;
    for (uint32_t l = 0; l < key.location.line_count; l++) hp_profile_append_line(merge->sum, &lines[l]);
    hp_profile_append_location(merge->sum, &key.location);
  }
  free(lines);
  return *mapped;
}

struct stack_key {
  const uint32_t *locations;
  const struct hp_label *labels;
  uint32_t location_count, label_count;
};

static bool label_equal(const struct hp_label *a, const struct hp_label *b) {
  return a->key == b->key && a->str == b->str && a->unit == b->unit && a->num == b->num;
}

static bool stack_equal(const void *context, uint32_t index, const void *key) {
  const struct hp_merge *merge = context;
  const struct hp_sample *known = &merge->sum->samples[index];
  const struct stack_key *wanted = key;
  if (known->location_count != wanted->location_count || known->label_count != wanted->label_count) return false;
  for (uint32_t i = 0; i < known->location_count; i++) /* there is no array to point into while no row has a stack */
    if (merge->sum->stack_locations[known->first_location + i] != wanted->locations[i]) return false;
  for (uint32_t l = 0; l < known->label_count; l++)
    if (!label_equal(&merge->sum->labels[known->first_label + l], &wanted->labels[l])) return false;
  return true;
}

static int64_t add_scaled(int64_t sum, int64_t value, int64_t scale) {
  int64_t product, result;
  if (__builtin_mul_overflow(value, scale, &product)) product = (value < 0) == (scale < 0) ? INT64_MAX : INT64_MIN;
  if (__builtin_add_overflow(sum, product, &result)) result = product < 0 ? INT64_MIN : INT64_MAX;
  return result;
}

/* Translates stack and labels of one sample into the scratch arrays; the key points at them. */
static uint64_t translate_stack(struct hp_merge *merge, struct incoming *in, const struct hp_sample *sample,
                                struct stack_key *key) {
  hp_array_reserve(&in->stack, &in->stack_capacity, (size_t)sample->location_count + 1, sizeof *in->stack);
  hp_array_reserve(&in->labels, &in->labels_capacity, (size_t)sample->label_count + 1, sizeof *in->labels);
  uint64_t hash = merge->seed;
  for (uint32_t i = 0; i < sample->location_count; i++) {
    in->stack[i] = map_location(merge, in, in->profile->stack_locations[sample->first_location + i]);
    hash = mix(hash, in->stack[i]);
  }
  for (uint32_t i = 0; i < sample->label_count; i++) {
    const struct hp_label *label = &in->profile->labels[sample->first_label + i];
    in->labels[i] = (struct hp_label){map_string(merge, in, label->key), map_string(merge, in, label->str),
                                      map_string(merge, in, label->unit), label->num};
    hash = mix(mix(hash, (uint64_t)in->labels[i].key << 32 | in->labels[i].str), (uint64_t)label->num);
  }
  *key = (struct stack_key){in->stack, in->labels, sample->location_count, sample->label_count};
  return hash;
}

static void add_sample(struct hp_merge *merge, struct incoming *in, size_t index, int64_t scale) {
  struct hp_profile *sum = merge->sum;
  const struct hp_sample *sample = &in->profile->samples[index];
  struct stack_key key;
  uint64_t hash = translate_stack(merge, in, sample, &key);
  size_t next = sum->sample_count;
  uint32_t found = hp_index_table_find_or_add(&merge->stacks, hash, stack_equal, merge, &key, next);
  if (found == next) {
    memset(in->values, 0, sum->type_count * sizeof *in->values);
    hp_profile_append_sample(sum, in->stack, sample->location_count, in->values);
    for (uint32_t i = 0; i < sample->label_count; i++) hp_profile_append_label(sum, &in->labels[i]);
  }
  for (size_t t = 0; t < sum->type_count; t++) {
    int64_t *value = &sum->values[found * sum->type_count + t];
    *value = add_scaled(*value, hp_profile_value(in->profile, index, in->types[t]), scale);
  }
}

static bool same_text(const struct hp_profile *a, uint32_t x, const struct hp_profile *b, uint32_t y) {
  return strcmp(hp_profile_text(a, x), hp_profile_text(b, y)) == 0;
}

/* Where the sum's columns are in the profile. */
static int match_types(struct hp_merge *merge, struct incoming *in, const char *name, struct hp_error *error) {
  const struct hp_profile *sum = merge->sum, *profile = in->profile;
  for (size_t t = 0; t < sum->type_count; t++) {
    const struct hp_value_type *wanted = &sum->types[t];
    for (uint32_t i = 0; i < profile->type_count && in->types[t] == HP_NONE; i++)
      if (same_text(sum, wanted->type, profile, profile->types[i].type) &&
          same_text(sum, wanted->unit, profile, profile->types[i].unit))
        in->types[t] = i;
    if (in->types[t] == HP_NONE)
      return hp_error_set(error, "%.200s: no sample type %s in %s, which %.200s has", name,
                          hp_profile_text(sum, wanted->type), hp_profile_text(sum, wanted->unit), merge->first_name);
  }
  return 0;
}

/* What the first profile says about the whole. */
static void take_head(struct hp_merge *merge, struct incoming *in) {
  struct hp_profile *sum = merge->sum;
  const struct hp_profile *first = in->profile;
  for (size_t t = 0; t < first->type_count; t++)
    hp_profile_append_type(sum, hp_profile_text(first, first->types[t].type), hp_profile_text(first, first->types[t].unit));
  sum->period_type =
      (struct hp_value_type){map_string(merge, in, first->period_type.type), map_string(merge, in, first->period_type.unit)};
  sum->drop_frames = map_string(merge, in, first->drop_frames);
  sum->keep_frames = map_string(merge, in, first->keep_frames);
  sum->default_type = map_string(merge, in, first->default_type);
  sum->doc_url = map_string(merge, in, first->doc_url);
  for (size_t i = 0; i < first->comment_count; i++)
    hp_profile_append_comment(sum, hp_profile_text(first, first->comments[i]));
  if (first->mapping_count != 0) map_mapping(merge, in, 0);
}

/* Does the library's comment hold figures of one process? What was lost stays: better too little than nothing. */
static bool has_figures(const char *comment) {
  static const char *const topics[] = {"heapprof.sampling ", "heapprof.totals ", "heapprof.reconcile ", "heapprof.unseen "};
  for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
    if (strncmp(comment, topics[i], strlen(topics[i])) == 0) return true;
  return false;
}

/* Comments stay only if every profile has them: figures of one process say nothing about the sum, not even if those of another happen to
 * be the same. But what holds a difference is one. */
static void join_comments(struct hp_profile *sum, const struct hp_profile *profile) {
  size_t kept = 0;
  for (size_t i = 0; i < sum->comment_count; i++) {
    const char *text = hp_profile_text(sum, sum->comments[i]);
    if (hp_profile_is_difference_mark(text) || (hp_profile_has_comment(profile, text) && !has_figures(text)))
      sum->comments[kept++] = sum->comments[i];
  }
  sum->comment_count = kept;
  for (size_t i = 0; i < profile->comment_count; i++) {
    const char *text = hp_profile_text(profile, profile->comments[i]);
    if (hp_profile_is_difference_mark(text) && !hp_profile_has_comment(sum, text)) hp_profile_append_comment(sum, text);
  }
}

static void count_program(struct hp_merge *merge, struct incoming *in) {
  if (in->profile->mapping_count == 0) return;
  const struct hp_mapping *program = &in->profile->mappings[0];
  uint32_t name = map_string(merge, in, program->build_id != 0 ? program->build_id : program->file);
  if (hp_id_map_add(&merge->programs, name, merge->program_count)) merge->program_count++;
}

static void take_times(struct hp_profile *sum, const struct hp_profile *profile) {
  if (profile->time_nanos > sum->time_nanos) sum->time_nanos = profile->time_nanos;
  if (profile->period > sum->period) sum->period = profile->period;
  sum->duration_nanos = add_scaled(sum->duration_nanos, profile->duration_nanos, 1);
}

int hp_merge_add(struct hp_merge *merge, const struct hp_profile *profile, const char *name, int64_t scale,
                 struct hp_error *error) {
  struct incoming in = {.profile = profile};
  in.strings = hp_alloc_none(profile->string_count);
  in.functions = hp_alloc_none(profile->function_count);
  in.mappings = hp_alloc_none(profile->mapping_count);
  in.locations = hp_alloc_none(profile->location_count);
  if (merge->profile_count++ == 0) {
    merge->first_name = name;
    take_head(merge, &in);
  } else {
    join_comments(merge->sum, profile);
  }
  count_program(merge, &in);
  in.types = hp_alloc_none(merge->sum->type_count);
  in.values = hp_alloc_zeroed(merge->sum->type_count, sizeof *in.values);
  int result = match_types(merge, &in, name, error);
  if (result == 0) {
    take_times(merge->sum, profile);
    for (size_t i = 0; i < profile->sample_count; i++) add_sample(merge, &in, i, scale);
  }
  free(in.strings);
  free(in.functions);
  free(in.mappings);
  free(in.locations);
  free(in.types);
  free(in.values);
  free(in.stack);
  free(in.labels);
  return result;
}

static bool all_zero(const struct hp_profile *profile, size_t sample) {
  for (size_t t = 0; t < profile->type_count; t++)
    if (hp_profile_value(profile, sample, t) != 0) return false;
  return true;
}

struct hp_profile *hp_merge_finish(struct hp_merge *merge) {
  struct hp_profile *sum = merge->sum;
  size_t kept = 0;
  for (size_t i = 0; i < sum->sample_count; i++) {
    if (all_zero(sum, i)) continue;
    sum->samples[kept] = sum->samples[i];
    memmove(sum->values + kept * sum->type_count, sum->values + i * sum->type_count, sum->type_count * sizeof *sum->values);
    kept++;
  }
  sum->sample_count = kept;
  hp_id_map_free(&merge->programs);
  hp_index_table_free(&merge->mappings);
  hp_index_table_free(&merge->locations);
  hp_index_table_free(&merge->stacks);
  free(merge);
  return sum;
}

int hp_merge_files(char *const *paths, size_t count, struct hp_origins *origins, struct hp_profile **out,
                   struct hp_error *error) {
  if (count == 1) return hp_profile_read(paths[0], out, error);
  struct hp_merge *merge = hp_merge_new();
  int result = 0;
  for (size_t i = 0; i < count && result == 0; i++) {
    struct hp_profile *profile;
    result = hp_profile_read(paths[i], &profile, error);
    if (result != 0) break;
    hp_origins_add(origins, profile, paths[i]);
    result = hp_merge_add(merge, profile, paths[i], 1, error);
    hp_profile_free(profile);
  }
  uint32_t programs = merge->program_count;
  struct hp_profile *sum = hp_merge_finish(merge);
  if (result != 0) {
    hp_profile_free(sum);
    return result;
  }
  char *comment = programs > 1 ? hp_format("sum of %zu profiles of %" PRIu32 " programs", count, programs)
                               : hp_format("sum of %zu profiles", count);
  hp_profile_append_comment(sum, comment);
  free(comment);
  *out = sum;
  return 0;
}
