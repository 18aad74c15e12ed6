/* SPDX-License-Identifier: MIT
 * profile_reader.c - see profile_reader.h.
 *
 * profile_runs.c cuts the stream between fields; each run goes to protobuf-c with an arena behind it, and what comes out is moved into
 * the model. Fields come in any order, so ids and string indices are kept as they are until the end and then resolved; every
 * reference is checked there.
 *
 * Bounds: the limit of profile_reader.h. Counts are never trusted, only bytes that came.
 */
#include "profile_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "byte_source.h"
#include "cli_memory.h"
#include "id_map.h"
#include "profile.pb-c.h"
#include "profile_runs.h"

/* What makes up for the start of a thread. */
#define AHEAD_BYTES ((uint64_t)256 * 1024)

static uint64_t limit_bytes = HP_READ_LIMIT_BYTES, ahead_bytes = AHEAD_BYTES;

void hp_profile_read_limit_set(uint64_t new_limit_bytes) {
  limit_bytes = new_limit_bytes != 0 ? new_limit_bytes : HP_READ_LIMIT_BYTES;
}

void hp_profile_read_ahead_set(uint64_t input_bytes) { ahead_bytes = input_bytes != 0 ? input_bytes : AHEAD_BYTES; }

/* A growing array of ids: of 32 bits as long as none needs more, which is nearly always; these lists are the most there is to hold. */
struct id_list {
  uint32_t *narrow; /* null once wide is there */
  uint64_t *wide;
  size_t count, capacity;
};

struct reader {
  const char *name;
  struct hp_error *error;
  struct hp_profile *profile;
  /* As the file has them, parallel to the model's arrays. */
  struct id_list stacks;            /* location ids */
  struct id_list location_mappings; /* mapping ids */
  struct id_list line_functions;    /* function ids */
  struct hp_id_map mappings, locations, functions;
  struct hp_value_type *types;
  size_t types_count, types_capacity;
  uint32_t *comments;
  size_t comments_count, comments_capacity;
  bool has_strings;
};

static void id_list_widen(struct id_list *list) {
  list->wide = hp_realloc(NULL, list->capacity, sizeof *list->wide);
  for (size_t i = 0; i < list->count; i++) list->wide[i] = list->narrow[i];
  free(list->narrow);
  list->narrow = NULL;
}

static void id_list_append(struct id_list *list, const uint64_t *ids, size_t count) {
  if (list->wide == NULL) {
    uint64_t widest = 0;
    hp_array_reserve(&list->narrow, &list->capacity, list->count + count, sizeof *list->narrow);
    for (size_t i = 0; i < count; i++) {
      list->narrow[list->count + i] = (uint32_t)ids[i];
      widest |= ids[i];
    }
    if (widest > UINT32_MAX) id_list_widen(list);
  }
  if (list->wide != NULL) {
    hp_array_reserve(&list->wide, &list->capacity, list->count + count, sizeof *list->wide);
    for (size_t i = 0; i < count; i++) list->wide[list->count + i] = ids[i];
  }
  list->count += count;
}

static uint64_t id_list_get(const struct id_list *list, size_t index) {
  return list->wide != NULL ? list->wide[index] : list->narrow[index];
}

static size_t id_list_memory_bytes(const struct id_list *list) {
  return list->capacity * (list->wide != NULL ? sizeof *list->wide : sizeof *list->narrow);
}

static void id_list_free(struct id_list *list) {
  free(list->narrow);
  free(list->wide);
}

static int fail_malformed(struct reader *reader, const char *what) {
  return hp_profile_malformed(reader->name, what, reader->error);
}

/* A string index as the file has it; whether there is such a string is checked at the end. */
static uint32_t string_index(int64_t index) { return index < 0 || index >= (int64_t)HP_NONE ? HP_NONE : (uint32_t)index; }

static int take_samples(struct reader *reader, const Perftools__Profiles__Profile *run) {
  struct hp_profile *profile = reader->profile;
  for (size_t i = 0; i < run->n_sample; i++) {
    const Perftools__Profiles__Sample *sample = run->sample[i];
    if (profile->sample_count == 0) profile->type_count = sample->n_value; /* until the types are resolved */
    if (sample->n_value != profile->type_count)
      return fail_malformed(reader, "its samples have different numbers of values");
    uint32_t index = hp_profile_append_sample(profile, NULL, 0, sample->value);
    profile->samples[index].first_location = (uint32_t)reader->stacks.count;
    profile->samples[index].location_count = (uint32_t)sample->n_location_id;
    id_list_append(&reader->stacks, sample->location_id, sample->n_location_id);
    if (reader->stacks.count > HP_MODEL_COUNT_MAX) return fail_malformed(reader, "its stacks have too many frames");
    for (size_t l = 0; l < sample->n_label; l++) {
      const Perftools__Profiles__Label *label = sample->label[l];
      hp_profile_append_label(profile, &(struct hp_label){string_index(label->key), string_index(label->str),
                                                          string_index(label->num_unit), label->num});
    }
  }
  return 0;
}

static int take_id(struct reader *reader, struct hp_id_map *map, uint64_t id, uint32_t index, const char *what) {
  if (id == 0) return hp_error_set(reader->error, "%s: not a pprof profile: a %s has id 0", reader->name, what);
  if (hp_id_map_add(map, id, index)) return 0;
  return hp_error_set(reader->error, "%s: not a pprof profile: two %ss have id %" PRIu64, reader->name, what, id);
}

static int take_mappings(struct reader *reader, const Perftools__Profiles__Profile *run) {
  for (size_t i = 0; i < run->n_mapping; i++) {
    const Perftools__Profiles__Mapping *mapping = run->mapping[i];
    uint32_t index = hp_profile_append_mapping(
        reader->profile,
        &(struct hp_mapping){mapping->memory_start, mapping->memory_limit, mapping->file_offset,
                             string_index(mapping->filename), string_index(mapping->build_id), mapping->has_functions,
                             mapping->has_filenames, mapping->has_line_numbers, mapping->has_inline_frames});
    if (take_id(reader, &reader->mappings, mapping->id, index, "mapping") != 0) return -1;
  }
  return 0;
}

static int take_locations(struct reader *reader, const Perftools__Profiles__Profile *run) {
  struct hp_profile *profile = reader->profile;
  for (size_t i = 0; i < run->n_location; i++) {
    const Perftools__Profiles__Location *location = run->location[i];
    uint32_t index =
        hp_profile_append_location(profile, &(struct hp_location){location->address, HP_NONE, (uint32_t)profile->line_count,
                                                                  (uint32_t)location->n_line, location->is_folded});
    id_list_append(&reader->location_mappings, &location->mapping_id, 1);
    for (size_t l = 0; l < location->n_line; l++) {
      const Perftools__Profiles__Line *line = location->line[l];
      hp_profile_append_line(profile, &(struct hp_line){HP_NONE, line->line, line->column});
      id_list_append(&reader->line_functions, &line->function_id, 1);
    }
    if (take_id(reader, &reader->locations, location->id, index, "location") != 0) return -1;
  }
  return 0;
}

static int take_functions(struct reader *reader, const Perftools__Profiles__Profile *run) {
  for (size_t i = 0; i < run->n_function; i++) {
    const Perftools__Profiles__Function *function = run->function[i];
    uint32_t index = hp_profile_append_function(
        reader->profile, &(struct hp_function){string_index(function->name), string_index(function->system_name),
                                               string_index(function->filename), function->start_line});
    if (take_id(reader, &reader->functions, function->id, index, "function") != 0) return -1;
  }
  return 0;
}

static int take_strings(struct reader *reader, const Perftools__Profiles__Profile *run) {
  for (size_t i = 0; i < run->n_string_table; i++) {
    const char *text = run->string_table[i];
    if (!reader->has_strings) { /* the model has its "" already */
      if (text[0] != '\0') return fail_malformed(reader, "its first string is not empty");
      reader->has_strings = true;
      continue;
    }
    hp_profile_append_string(reader->profile, text, strlen(text));
  }
  return 0;
}

static void take_scalars(struct reader *reader, const Perftools__Profiles__Profile *run) {
  struct hp_profile *profile = reader->profile;
  for (size_t i = 0; i < run->n_sample_type; i++) {
    hp_array_reserve(&reader->types, &reader->types_capacity, reader->types_count + 1, sizeof *reader->types);
    reader->types[reader->types_count++] =
        (struct hp_value_type){string_index(run->sample_type[i]->type), string_index(run->sample_type[i]->unit)};
  }
  for (size_t i = 0; i < run->n_comment; i++) {
    hp_array_reserve(&reader->comments, &reader->comments_capacity, reader->comments_count + 1, sizeof *reader->comments);
    reader->comments[reader->comments_count++] = string_index(run->comment[i]);
  }
  if (run->period_type != NULL)
    profile->period_type =
        (struct hp_value_type){string_index(run->period_type->type), string_index(run->period_type->unit)};
  if (run->period != 0) profile->period = run->period;
  if (run->time_nanos != 0) profile->time_nanos = run->time_nanos;
  if (run->duration_nanos != 0) profile->duration_nanos = run->duration_nanos;
  if (run->drop_frames != 0) profile->drop_frames = string_index(run->drop_frames);
  if (run->keep_frames != 0) profile->keep_frames = string_index(run->keep_frames);
  if (run->default_sample_type != 0) profile->default_type = string_index(run->default_sample_type);
  if (run->doc_url != 0) profile->doc_url = string_index(run->doc_url);
}

static int check_memory(struct reader *reader) {
  size_t held = hp_profile_memory_bytes(reader->profile) + hp_id_map_memory_bytes(&reader->locations) +
                hp_id_map_memory_bytes(&reader->functions) + hp_id_map_memory_bytes(&reader->mappings) +
                id_list_memory_bytes(&reader->stacks) + id_list_memory_bytes(&reader->location_mappings) +
                id_list_memory_bytes(&reader->line_functions) + reader->types_capacity * sizeof *reader->types +
                reader->comments_capacity * sizeof *reader->comments;
  return held <= limit_bytes ? 0 : hp_profile_too_large(reader->name, limit_bytes, reader->error);
}

/* Whole fields, as a Profile. */
static int take_run(struct reader *reader, const Perftools__Profiles__Profile *run) {
  take_scalars(reader, run);
  if (take_strings(reader, run) != 0 || take_mappings(reader, run) != 0 || take_functions(reader, run) != 0 ||
      take_locations(reader, run) != 0 || take_samples(reader, run) != 0)
    return -1;
  return check_memory(reader);
}

static int read_runs(struct reader *reader, struct hp_byte_source *source, uint64_t input_bytes) {
  struct hp_profile_runs *runs = hp_profile_runs_new(source, input_bytes >= ahead_bytes);
  const Perftools__Profiles__Profile *run;
  int result;
  do result = hp_profile_runs_next(runs, &run, reader->error);
  while (result == 0 && run != NULL && (result = take_run(reader, run)) == 0);
  hp_profile_runs_free(runs);
  return result;
}

static int check_string(struct reader *reader, uint32_t string) {
  if (string < reader->profile->string_count) return 0;
  return fail_malformed(reader, "it refers to a string that is not in the file");
}

static int resolve_strings(struct reader *reader) {
  struct hp_profile *profile = reader->profile;
  int bad = 0;
  for (size_t i = 0; i < profile->type_count && bad == 0; i++)
    bad = check_string(reader, profile->types[i].type) | check_string(reader, profile->types[i].unit);
  for (size_t i = 0; i < profile->mapping_count && bad == 0; i++)
    bad = check_string(reader, profile->mappings[i].file) | check_string(reader, profile->mappings[i].build_id);
  for (size_t i = 0; i < profile->function_count && bad == 0; i++)
    bad = check_string(reader, profile->functions[i].name) | check_string(reader, profile->functions[i].system_name) |
          check_string(reader, profile->functions[i].file);
  for (size_t i = 0; i < profile->label_count && bad == 0; i++)
    bad = check_string(reader, profile->labels[i].key) | check_string(reader, profile->labels[i].str) |
          check_string(reader, profile->labels[i].unit);
  for (size_t i = 0; i < profile->comment_count && bad == 0; i++) bad = check_string(reader, profile->comments[i]);
  if (bad != 0) return bad;
  return check_string(reader, profile->period_type.type) | check_string(reader, profile->period_type.unit) |
         check_string(reader, profile->drop_frames) | check_string(reader, profile->keep_frames) |
         check_string(reader, profile->default_type) | check_string(reader, profile->doc_url);
}

static int fail_unresolved(struct reader *reader, const char *from, size_t index, const char *what, uint64_t id) {
  return hp_error_set(reader->error, "%s: not a pprof profile: %s %zu refers to %s %" PRIu64 ", which is not in the file",
                      reader->name, from, index, what, id);
}

static int resolve_locations(struct reader *reader) {
  struct hp_profile *profile = reader->profile;
  for (size_t i = 0; i < profile->location_count; i++) {
    struct hp_location *location = &profile->locations[i];
    uint64_t id = id_list_get(&reader->location_mappings, i);
    if (id != 0 && (location->mapping = hp_id_map_find(&reader->mappings, id)) == HP_NONE)
      return fail_unresolved(reader, "location", i, "mapping", id);
    for (uint32_t l = location->first_line; l < location->first_line + location->line_count; l++) {
      id = id_list_get(&reader->line_functions, l);
      if (id != 0 && (profile->lines[l].function = hp_id_map_find(&reader->functions, id)) == HP_NONE)
        return fail_unresolved(reader, "location", i, "function", id);
    }
  }
  return 0;
}

/* In place where the ids are as narrow as the indices. */
static int resolve_stacks(struct reader *reader) {
  struct hp_profile *profile = reader->profile;
  struct id_list *ids = &reader->stacks;
  uint32_t *indices = ids->wide == NULL ? ids->narrow : hp_realloc(NULL, ids->count, sizeof *indices);
  profile->stack_locations = indices;
  profile->stack_location_count = ids->count;
  ids->narrow = NULL;
  for (size_t i = 0; i < profile->sample_count; i++) {
    const struct hp_sample *sample = &profile->samples[i];
    for (uint32_t l = sample->first_location; l < sample->first_location + sample->location_count; l++) {
      uint64_t id = ids->wide == NULL ? indices[l] : ids->wide[l];
      indices[l] = hp_id_map_find(&reader->locations, id);
      if (indices[l] == HP_NONE) return fail_unresolved(reader, "sample", i, "location", id);
    }
  }
  return 0;
}

static int resolve(struct reader *reader) {
  struct hp_profile *profile = reader->profile;
  if (reader->types_count == 0) return fail_malformed(reader, "it names no sample types");
  if (profile->sample_count != 0 && profile->type_count != reader->types_count)
    return fail_malformed(reader, "its samples have another number of values than it has sample types");
  profile->types = reader->types;
  profile->type_count = reader->types_count;
  reader->types = NULL;
  profile->comments = reader->comments;
  profile->comment_count = reader->comments_count;
  reader->comments = NULL;
  if (resolve_strings(reader) != 0 || resolve_locations(reader) != 0) return -1;
  return resolve_stacks(reader);
}

static int read_source(struct hp_byte_source *source, uint64_t input_bytes, struct hp_profile **out,
                       struct hp_error *error) {
  struct reader reader = {.name = source->name, .error = error, .profile = hp_profile_new()};
  int result = read_runs(&reader, source, input_bytes);
  if (result == 0) result = resolve(&reader);
  id_list_free(&reader.stacks);
  id_list_free(&reader.location_mappings);
  id_list_free(&reader.line_functions);
  free(reader.types);
  free(reader.comments);
  hp_id_map_free(&reader.mappings);
  hp_id_map_free(&reader.locations);
  hp_id_map_free(&reader.functions);
  hp_byte_source_close(source);
  if (result == 0)
    *out = reader.profile;
  else
    hp_profile_free(reader.profile);
  return result;
}

int hp_profile_read_memory(const char *name, const void *bytes, size_t length_bytes, struct hp_profile **out,
                           struct hp_error *error) {
  struct hp_byte_source source;
  hp_byte_source_open(&source, name, -1, bytes, length_bytes, limit_bytes);
  return read_source(&source, length_bytes, out, error);
}

int hp_profile_read(const char *path, struct hp_profile **out, struct hp_error *error) {
  bool is_stdin = strcmp(path, "-") == 0;
  int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return hp_error_set(error, "%s: cannot open: %s", path, strerror(errno));
  struct hp_byte_source source;
  hp_byte_source_open(&source, is_stdin ? "standard input" : path, fd, NULL, 0, limit_bytes);
  struct stat status;
  bool is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  int result = read_source(&source, is_regular ? (uint64_t)status.st_size : 0, out, error);
  if (!is_stdin) close(fd);
  return result;
}
