/* SPDX-License-Identifier: MIT
 * pprof.c - see pprof.h. The rows are read twice; in the file, strings stand before what refers to them:
 *   strings, header | all frames met, names looked up | strings of labels, samples | strings, mappings, functions, locations
 * Ids are given in the order of first use, as the samples are written. */
#include "pprof.h"

#include <errno.h>
#include <string.h>

#include "location_table.h"
#include "mapping_table.h"
#include "profile_rows.h"
#include "profile_stream.h"
#include "string_interner.h"
#include "symbols.h"

enum {
  ENCODE_BATCH = 16, /* elements in a piece */
  ENCODE_COMMENTS_MAX = 1024,
  ENCODE_LABEL_CACHE = 64, /* power of two */
  ENCODE_LABELS_MAX = UINT8_MAX,
};
/* The largest parts of a packed sample: ids and string numbers have 32 bits (5 bytes), values 64 (10 bytes); a label has
 * three of the one, one of the other and their tags; tags and lengths of the sample's own fields. */
enum {
  PACKED_ID_MAX = 5,
  PACKED_VALUE_MAX = 10,
  PACKED_LABEL_MAX = 3 * (1 + 5) + (1 + 10) + 4,
  PACKED_SAMPLE_REST_MAX = 32
};
_Static_assert((HP_ROW_DEPTH_MAX + 1) * PACKED_ID_MAX + HP_VALUES * PACKED_VALUE_MAX + ENCODE_LABELS_MAX * PACKED_LABEL_MAX +
                       PACKED_SAMPLE_REST_MAX <
                   HP_PIECE_BYTES_MAX,
               "a sample must fit a piece");
_Static_assert(ENCODE_COMMENTS_MAX * 5 + 512 < HP_PIECE_BYTES_MAX, "piece");
_Static_assert(HP_STRING_BYTES_MAX * 4 < HP_PIECE_BYTES_MAX, "piece");

struct encoder {
  const struct hp_snapshot *snapshot;
  struct hp_arena *arena;
  bool with_symbols;
  struct hp_profile_stream *stream;
  struct hp_string_interner strings;
  uint32_t strings_written;
  struct hp_mapping_table mappings;
  struct hp_location_table locations;
  struct hp_profile_rows rows;
  uint32_t *used_frames; /* by location id - 1 */
  uint32_t used_count;
  uint32_t *functions; /* string number of the name, by function id - 1 */
  uint32_t function_count;
  struct hp_pair_map function_of_name; /* name's address in memory: equal names nearly always share one */
  struct hp_pair_map function_of_string;
  struct {
    const char *text;
    uint32_t string;
  } label_cache[ENCODE_LABEL_CACHE];
  uint64_t location_ids[HP_ROW_DEPTH_MAX + 1];
  Perftools__Profiles__Label labels[ENCODE_LABELS_MAX];
  Perftools__Profiles__Label *label_list[ENCODE_LABELS_MAX];
};

static uint32_t intern(struct encoder *encoder, const char *text) {
  return hp_string_interner_add(&encoder->strings, text, strlen(text), true);
}

/* Strings that came since the last call. */
static int put_strings(struct encoder *encoder) {
  uint32_t count = hp_string_interner_count(&encoder->strings);
  while (encoder->strings_written < count) {
    size_t length;
    const char *text = hp_string_interner_get(&encoder->strings, encoder->strings_written, &length);
    char *list[] = {(char *)text};
    Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
    piece.n_string_table = 1;
    piece.string_table = list;
    int status = hp_profile_stream_put(encoder->stream, &piece);
    if (status != 0) return status;
    encoder->strings_written++;
  }
  return 0;
}

/* false: no memory. */
static bool set_type(struct encoder *encoder, Perftools__Profiles__ValueType *type, const char *name, const char *unit) {
  *type = (Perftools__Profiles__ValueType)PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
  type->type = intern(encoder, name);
  type->unit = intern(encoder, unit);
  return type->type != HP_STRING_NONE && type->unit != HP_STRING_NONE;
}

static int put_header(struct encoder *encoder) {
  static const char *const NAMES[HP_VALUES] = {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"};
  const struct hp_snapshot *snapshot = encoder->snapshot;
  size_t columns = hp_profile_rows_columns(snapshot->kind);
  Perftools__Profiles__ValueType types[HP_VALUES];
  Perftools__Profiles__ValueType *type_list[HP_VALUES];
  Perftools__Profiles__ValueType period_type;
  Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
  for (size_t i = 0; i < columns; i++) {
    if (!set_type(encoder, &types[i], NAMES[i], i % 2 == 0 ? "count" : "bytes")) return -ENOMEM;
    type_list[i] = &types[i];
  }
  piece.n_sample_type = columns;
  piece.sample_type = type_list;
  piece.default_sample_type = types[columns - 1].type;
  if (!set_type(encoder, &period_type, "space", "bytes")) return -ENOMEM;
  piece.period_type = &period_type;
  piece.period = snapshot->period_bytes;
  piece.time_nanos = snapshot->time_nanos;
  piece.duration_nanos = snapshot->duration_nanos;
  piece.n_comment = snapshot->comment_count < ENCODE_COMMENTS_MAX ? snapshot->comment_count : ENCODE_COMMENTS_MAX;
  piece.comment = hp_arena_alloc(encoder->arena, piece.n_comment * sizeof piece.comment[0]);
  if (piece.comment == NULL) return -ENOMEM;
  for (size_t i = 0; i < piece.n_comment; i++) {
    uint32_t string = intern(encoder, snapshot->comments[i]);
    if (string == HP_STRING_NONE) return -ENOMEM;
    piece.comment[i] = string;
  }
  int status = put_strings(encoder);
  return status != 0 ? status : hp_profile_stream_put(encoder->stream, &piece);
}

/* Names for all frames, or, without symbols, for those near a leaf, where operator new is looked for. */
static void look_up_names(struct encoder *encoder, const char *executable) {
  struct hp_location_table *locations = &encoder->locations;
  struct hp_symbol_query *queries = hp_arena_alloc(encoder->arena, locations->count * sizeof queries[0]);
  uint32_t *frames = hp_arena_alloc(encoder->arena, locations->count * sizeof frames[0]);
  if (queries == NULL || frames == NULL) return;
  size_t n = 0;
  for (uint32_t i = HP_PSEUDO_FRAMES; i < locations->count; i++) {
    const struct hp_frame *frame = &locations->frames[i];
    if (frame->module == NULL || !(encoder->with_symbols || frame->is_near_leaf)) continue;
    queries[n] = (struct hp_symbol_query){.address = frame->address, .module = frame->module};
    frames[n++] = i;
  }
  hp_symbols_resolve(queries, n, executable, encoder->arena);
  for (size_t i = 0; i < n; i++) locations->frames[frames[i]].name = queries[i].name;
}

/* The id of the function of that name; 0: no memory. */
static uint32_t function_of(struct encoder *encoder, const char *name) {
  uint32_t id = hp_pair_map_get(&encoder->function_of_name, (uintptr_t)name, 0);
  if (id != 0) return id;
  uint32_t string = intern(encoder, name);
  if (string == HP_STRING_NONE) return 0;
  id = hp_pair_map_get(&encoder->function_of_string, string, 0);
  if (id == 0) {
    encoder->functions[encoder->function_count++] = string;
    id = encoder->function_count;
    if (!hp_pair_map_put(&encoder->function_of_string, string, 0, id)) return 0;
  }
  return hp_pair_map_put(&encoder->function_of_name, (uintptr_t)name, 0, id) ? id : 0;
}

static bool is_pseudo(const struct hp_frame *frame) { return frame->address == 0; }

/* First use of a frame: it gets its location id, its function's and its mapping's. A name for which there is no memory is left
 * out, since a reader can look it up; a pseudo frame's cannot be. false: no memory. */
static bool use_frame(struct encoder *encoder, uint32_t number) {
  struct hp_frame *frame = &encoder->locations.frames[number];
  bool has_name = frame->name != NULL && frame->name[0] != 0 && (encoder->with_symbols || is_pseudo(frame));
  if (has_name) frame->function_id = function_of(encoder, frame->name);
  if (frame->function_id == 0 && is_pseudo(frame)) return false;
  if (frame->module != NULL && hp_mapping_table_use(&encoder->mappings, frame->module).mapping == 0) return false;
  encoder->used_frames[encoder->used_count++] = number;
  frame->location_id = encoder->used_count;
  return true;
}

/* The location id of a frame; 0: no memory. */
static inline uint32_t location_of(struct encoder *encoder, uint32_t number) {
  const struct hp_frame *frame = &encoder->locations.frames[number];
  return frame->location_id != 0 || use_frame(encoder, number) ? frame->location_id : 0;
}

static int put_mappings(struct encoder *encoder) {
  for (uint32_t i = 0; i < encoder->mappings.count; i++) {
    const struct hp_mapping *mapping = &encoder->mappings.mappings[i];
    Perftools__Profiles__Mapping message = PERFTOOLS__PROFILES__MAPPING__INIT;
    Perftools__Profiles__Mapping *list[] = {&message};
    Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
    message.id = i + 1;
    message.memory_start = mapping->start;
    message.memory_limit = mapping->limit;
    message.file_offset = mapping->offset;
    message.filename = mapping->file;
    message.build_id = mapping->build_id;
    piece.n_mapping = 1;
    piece.mapping = list;
    int status = hp_profile_stream_put(encoder->stream, &piece);
    if (status != 0) return status;
  }
  return 0;
}

static int put_functions(struct encoder *encoder) {
  for (uint32_t i = 0; i < encoder->function_count; i++) {
    Perftools__Profiles__Function message = PERFTOOLS__PROFILES__FUNCTION__INIT;
    Perftools__Profiles__Function *list[] = {&message};
    Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
    message.id = i + 1;
    message.name = encoder->functions[i];
    message.system_name = encoder->functions[i];
    piece.n_function = 1;
    piece.function = list;
    int status = hp_profile_stream_put(encoder->stream, &piece);
    if (status != 0) return status;
  }
  return 0;
}

static void fill_location(struct encoder *encoder, uint32_t id, Perftools__Profiles__Location *location,
                          Perftools__Profiles__Line *line, Perftools__Profiles__Line **line_list) {
  const struct hp_frame *frame = &encoder->locations.frames[encoder->used_frames[id - 1]];
  perftools__profiles__location__init(location);
  location->id = id;
  location->address = frame->address;
  if (frame->module != NULL) {
    struct hp_module_place place = hp_mapping_table_use(&encoder->mappings, frame->module);
    location->mapping_id = place.mapping;
    location->address += place.shift;
  }
  if (frame->function_id != 0) {
    perftools__profiles__line__init(line);
    line->function_id = frame->function_id;
    *line_list = line;
    location->n_line = 1;
    location->line = line_list;
  }
}

static int put_locations(struct encoder *encoder) {
  struct {
    Perftools__Profiles__Location locations[ENCODE_BATCH];
    Perftools__Profiles__Location *location_list[ENCODE_BATCH];
    Perftools__Profiles__Line lines[ENCODE_BATCH];
    Perftools__Profiles__Line *line_list[ENCODE_BATCH];
  } *batch = hp_arena_alloc(encoder->arena, sizeof *batch);
  if (batch == NULL) return -ENOMEM;
  for (uint32_t id = 1; id <= encoder->used_count;) {
    Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
    piece.location = batch->location_list;
    while (piece.n_location < ENCODE_BATCH && id <= encoder->used_count) {
      size_t i = piece.n_location++;
      fill_location(encoder, id++, &batch->locations[i], &batch->lines[i], &batch->line_list[i]);
      batch->location_list[i] = &batch->locations[i];
    }
    int status = hp_profile_stream_put(encoder->stream, &piece);
    if (status != 0) return status;
  }
  return 0;
}

/* Labels repeat the same few texts, nearly always at the same few addresses. */
static uint32_t intern_label(struct encoder *encoder, const char *text) {
  size_t slot = ((uintptr_t)text >> 3 ^ (uintptr_t)text >> 9) & (ENCODE_LABEL_CACHE - 1);
  if (encoder->label_cache[slot].text != text) {
    uint32_t string = intern(encoder, text);
    if (string == HP_STRING_NONE) return string;
    encoder->label_cache[slot].text = text;
    encoder->label_cache[slot].string = string;
  }
  return encoder->label_cache[slot].string;
}

/* false: no memory. A label without a key, or an empty text, is no label. */
static bool add_label(struct encoder *encoder, const struct hp_label *label, size_t *count) {
  if (label->key == NULL || label->key[0] == 0 || (label->str != NULL && label->str[0] == 0)) return true;
  Perftools__Profiles__Label *message = &encoder->labels[*count];
  perftools__profiles__label__init(message);
  message->key = intern_label(encoder, label->key);
  if (label->str != NULL) {
    message->str = intern_label(encoder, label->str);
  } else {
    message->num = label->num;
    /* Readers drop a number that is 0 and has no unit. */
    const char *unit = label->unit != NULL ? label->unit : "";
    if (label->num == 0 && unit[0] == 0) unit = "count";
    message->num_unit = intern_label(encoder, unit);
  }
  encoder->label_list[(*count)++] = message;
  return message->key != HP_STRING_NONE && message->str != HP_STRING_NONE && message->num_unit != HP_STRING_NONE;
}

/* The row's location ids into encoder->location_ids; *out_n gets their number. false: no memory. */
static bool fill_location_ids(struct encoder *encoder, const struct hp_row *row, size_t *out_n) {
  struct hp_row_frames frames;
  if (!hp_profile_rows_read(&encoder->rows, row, &frames)) return false;
  size_t n = 0;
  for (; n < frames.count; n++) {
    uint32_t id = location_of(encoder, frames.frames[n]);
    if (id == 0) return false;
    encoder->location_ids[n] = id;
  }
  if (frames.pseudo != HP_FRAME_NONE) {
    uint32_t id = location_of(encoder, frames.pseudo);
    if (id == 0) return false;
    encoder->location_ids[n++] = id;
  }
  *out_n = n;
  return true;
}

static int put_sample(struct encoder *encoder, const struct hp_row *row) {
  int64_t values[HP_VALUES];
  Perftools__Profiles__Sample message = PERFTOOLS__PROFILES__SAMPLE__INIT;
  Perftools__Profiles__Sample *list[] = {&message};
  Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
  if (!fill_location_ids(encoder, row, &message.n_location_id)) return -ENOMEM;
  message.location_id = encoder->location_ids;
  message.n_value = hp_profile_rows_columns(encoder->snapshot->kind);
  message.value = values;
  for (size_t i = 0; i < message.n_value; i++) values[i] = hp_profile_rows_value(encoder->snapshot->kind, row, i);
  message.label = encoder->label_list;
  for (size_t i = 0; i < row->label_count; i++) {
    if (!add_label(encoder, &row->labels[i], &message.n_label)) return -ENOMEM;
  }
  piece.n_sample = 1;
  piece.sample = list;
  int status = put_strings(encoder);
  if (status != 0) return status;
  size_t bytes_max = message.n_location_id * PACKED_ID_MAX + message.n_value * PACKED_VALUE_MAX +
                     message.n_label * PACKED_LABEL_MAX + PACKED_SAMPLE_REST_MAX;
  return hp_profile_stream_put_bounded(encoder->stream, &piece, bytes_max);
}

static int put_samples(struct encoder *encoder) {
  int status = 0;
  for (size_t i = 0; status == 0 && i < encoder->snapshot->row_count; i++) {
    const struct hp_row *row = &encoder->snapshot->rows[i];
    if (hp_profile_rows_has(&encoder->rows, row)) status = put_sample(encoder, row);
  }
  return status;
}

static bool has_sets(const struct hp_snapshot *snapshot) {
  for (size_t i = 0; i < snapshot->row_count; i++) {
    if (snapshot->rows[i].modules != snapshot->rows[0].modules) return true;
  }
  return false;
}

static int prepare(struct encoder *encoder, const struct hp_pprof_options *options) {
  encoder->strings.arena = encoder->arena;
  encoder->function_of_name.arena = encoder->arena;
  encoder->function_of_string.arena = encoder->arena;
  encoder->with_symbols = options->with_symbols;
  bool is_ready =
      hp_location_table_init(&encoder->locations, encoder->arena, has_sets(encoder->snapshot)) &&
      hp_profile_rows_init(&encoder->rows, encoder->snapshot, options->max_depth, &encoder->locations, encoder->arena) &&
      hp_profile_rows_collect(&encoder->rows);
  return is_ready ? 0 : -ENOMEM;
}

/* What the frames that were met need. */
static bool make_tables(struct encoder *encoder, const char *executable) {
  encoder->used_frames = hp_arena_alloc(encoder->arena, encoder->locations.count * sizeof encoder->used_frames[0]);
  encoder->functions = hp_arena_alloc(encoder->arena, encoder->locations.count * sizeof encoder->functions[0]);
  return encoder->used_frames != NULL && encoder->functions != NULL &&
         hp_mapping_table_init(&encoder->mappings, encoder->arena, &encoder->strings, executable);
}

/* The names come after all that the profile cannot do without. */
static int encode(struct encoder *encoder, const struct hp_pprof_options *options) {
  int status = prepare(encoder, options);
  if (status == 0) status = put_header(encoder);
  if (status == 0 && !make_tables(encoder, options->executable)) status = -ENOMEM;
  if (status == 0) look_up_names(encoder, options->executable);
  if (status == 0) status = put_samples(encoder);
  if (status == 0) status = put_strings(encoder);
  if (status == 0) status = put_mappings(encoder);
  if (status == 0) status = put_functions(encoder);
  if (status == 0) status = put_locations(encoder);
  return status != 0 ? status : hp_profile_stream_close(encoder->stream);
}

int hp_pprof_encode(const struct hp_snapshot *snapshot, const struct hp_pprof_options *options, struct hp_arena *arena,
                    struct hp_byte_sink *sink, const char **out_fault) {
  if (out_fault != NULL) *out_fault = NULL;
  struct encoder *encoder = hp_arena_alloc(arena, sizeof *encoder);
  struct hp_profile_stream *stream = hp_profile_stream_open(arena, sink, snapshot->kind, snapshot->row_count);
  if (encoder == NULL || stream == NULL) return -ENOMEM;
  encoder->snapshot = snapshot;
  encoder->arena = arena;
  encoder->stream = stream;
  int status = encode(encoder, options);
  if (out_fault != NULL && status == -EBADMSG) *out_fault = hp_profile_stream_fault(stream);
  return status;
}
