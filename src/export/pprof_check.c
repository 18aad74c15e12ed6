/* SPDX-License-Identifier: MIT
 * pprof_check.c - see pprof_check.h. The wire format: a key (field number * 8 + wire type) and a varint, 8 bytes, 4 bytes or
 * a length and so many bytes; messages nest in the last. Nothing is read beyond the end of its message; no recursion. */
#include "pprof_check.h"

#include <errno.h>
#include <string.h>

#include "format.h"
#include "utf8.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Field numbers of proto/profile.proto. */
enum {
  PROFILE_SAMPLE_TYPE = 1,
  PROFILE_SAMPLE,
  PROFILE_MAPPING,
  PROFILE_LOCATION,
  PROFILE_FUNCTION,
  PROFILE_STRING,
  PROFILE_DROP_FRAMES,
  PROFILE_KEEP_FRAMES,
  PROFILE_PERIOD_TYPE = 11,
  PROFILE_COMMENT = 13,
  PROFILE_DEFAULT_TYPE,
  PROFILE_DOC_URL,
  PROFILE_FIELDS
};
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM, LABEL_UNIT };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD_ID };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

static const struct {
  char name[16];
  char unit[8];
} EXPECTED[HP_VALUES] = {
    {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};

struct span {
  const uint8_t *at;
  const uint8_t *end;
};

struct field {
  uint64_t number;
  unsigned wire;
  uint64_t value;    /* of the number types */
  struct span bytes; /* WIRE_BYTES */
};

/* Note the first fault. */
static HP_COLD HP_PRINTF(2, 3) int fail(struct hp_pprof_check *check, const char *format, ...) {
  if (check->fault[0] != 0) return -EBADMSG;
  struct hp_text text;
  hp_text_init(&text, check->fault, sizeof check->fault);
  va_list args;
  va_start(args, format);
  hp_text_vadd(&text, format, args);
  va_end(args);
  return -EBADMSG;
}

static bool read_varint_long(struct span *in, uint64_t *out) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
    uint8_t byte = *in->at++;
    value |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *out = value;
      return true;
    }
  }
  return false;
}

static inline bool read_varint(struct span *in, uint64_t *out) {
  if (in->at < in->end && *in->at < 0x80) {
    *out = *in->at++;
    return true;
  }
  if (in->end - in->at >= 2 && in->at[1] < 0x80) {
    *out = (in->at[0] & 0x7Fu) | (uint64_t)in->at[1] << 7;
    in->at += 2;
    return true;
  }
  return read_varint_long(in, out);
}

/* The next field of a message that is not at its end; false: malformed. */
static bool read_field(struct span *in, struct field *out) {
  uint64_t key;
  if (!read_varint(in, &key) || key >> 3 == 0) return false;
  out->number = key >> 3;
  out->wire = key & 7;
  if (out->wire == WIRE_VARINT) return read_varint(in, &out->value);
  uint64_t length = out->wire == WIRE_64 ? 8 : 4;
  if (out->wire == WIRE_BYTES) {
    if (!read_varint(in, &length)) return false;
  } else if (out->wire != WIRE_64 && out->wire != WIRE_32) {
    return false;
  }
  if (length > (uint64_t)(in->end - in->at)) return false;
  out->value = 0;
  out->bytes = (struct span){in->at, in->at + length};
  in->at += length;
  return true;
}

/* Numbers of a repeated field come one a field or packed: the next of them, until it returns false. *out_bad: malformed. */
static bool next_number(struct field *field, uint64_t *out, bool *out_bad) {
  if (field->wire == WIRE_VARINT) {
    *out = field->value;
    field->wire = WIRE_BYTES;
    field->bytes = (struct span){NULL, NULL};
    return true;
  }
  if (field->bytes.at == field->bytes.end) return false;
  if (read_varint(&field->bytes, out)) return true;
  *out_bad = true;
  return false;
}

static int malformed(struct hp_pprof_check *check, const char *what) {
  return fail(check, "invalid heap profile: malformed %s", what);
}

static int check_string(struct hp_pprof_check *check, uint64_t id) {
  if (id < check->strings) return 0;
  return fail(check, "invalid heap profile: string index %lu, table has %lu", id, check->strings);
}

static int feed_string(struct hp_pprof_check *check, struct span in) {
  size_t n = (size_t)(in.end - in.at);
  if (check->strings == 0 && n != 0) return fail(check, "invalid heap profile: string_table[0] is not empty");
  if (hp_utf8_valid_prefix((const char *)in.at, n) != n) {
    return fail(check, "invalid heap profile: string %lu is not UTF-8", check->strings);
  }
  if (check->strings < HP_PPROF_TEXTS) {
    size_t kept = n < HP_PPROF_TEXT_MAX ? n : HP_PPROF_TEXT_MAX - 1;
    memcpy(check->texts[check->strings], in.at, kept);
    check->texts[check->strings][kept] = 0;
  }
  check->strings++;
  return 0;
}

static const char *text_of(const struct hp_pprof_check *check, uint64_t id) {
  return id < HP_PPROF_TEXTS && id < check->strings ? check->texts[id] : "?";
}

static int feed_value_type(struct hp_pprof_check *check, struct span in, uint64_t *out_name, uint64_t *out_unit) {
  *out_name = *out_unit = 0;
  while (in.at < in.end) {
    struct field field;
    if (!read_field(&in, &field)) return malformed(check, "value type");
    if (field.number == 1) *out_name = field.value;
    if (field.number == 2) *out_unit = field.value;
  }
  int status = check_string(check, *out_name);
  return status != 0 ? status : check_string(check, *out_unit);
}

static int feed_sample_type(struct hp_pprof_check *check, struct span in) {
  uint64_t name;
  uint64_t unit;
  int status = feed_value_type(check, in, &name, &unit);
  if (status != 0) return status;
  if (check->types < HP_PPROF_TYPES_MAX) {
    check->type_names[check->types] = name;
    check->type_units[check->types] = unit;
  }
  check->types++;
  check->are_types_right = false;
  return 0;
}

static uint64_t wanted_types(enum hp_profile_kind kind) {
  return kind == HP_KIND_ALLOC || kind == HP_KIND_DELTA ? 2 : HP_VALUES;
}

static int check_types(struct hp_pprof_check *check) {
  if (check->are_types_right) return 0;
  uint64_t want = wanted_types(check->kind);
  if (check->types != want) return fail(check, "invalid heap profile: got %lu sample types, want %lu", check->types, want);
  for (uint64_t i = 0; i < want; i++) {
    const char *name = text_of(check, check->type_names[i]);
    if (strcmp(name, EXPECTED[i].name) != 0) {
      return fail(check, "invalid heap profile: got \"%s\" sample type at index %lu, want \"%s\"", name, i,
                  EXPECTED[i].name);
    }
    const char *unit = text_of(check, check->type_units[i]);
    if (strcmp(unit, EXPECTED[i].unit) != 0) {
      return fail(check, "invalid heap profile: got \"%s\" unit at index %lu, want \"%s\"", unit, i, EXPECTED[i].unit);
    }
  }
  check->are_types_right = true;
  return 0;
}

static int keep_range(struct hp_pprof_check *check, uint64_t start, uint64_t limit) {
  if (check->mappings == check->range_capacity) {
    uint64_t capacity = check->range_capacity == 0 ? 64 : check->range_capacity * 2;
    struct hp_pprof_check_range *ranges = hp_arena_alloc(check->arena, capacity * sizeof *ranges);
    if (ranges == NULL) return -ENOMEM;
    if (check->mappings != 0) memcpy(ranges, check->ranges, check->mappings * sizeof *ranges);
    check->ranges = ranges;
    check->range_capacity = capacity;
  }
  check->ranges[check->mappings++] = (struct hp_pprof_check_range){start, limit};
  return 0;
}

static int feed_mapping(struct hp_pprof_check *check, struct span in) {
  uint64_t id = 0;
  uint64_t start = 0;
  uint64_t limit = 0;
  while (in.at < in.end) {
    struct field field;
    if (!read_field(&in, &field)) return malformed(check, "mapping");
    if (field.number == MAPPING_ID) id = field.value;
    if (field.number == MAPPING_START) start = field.value;
    if (field.number == MAPPING_LIMIT) limit = field.value;
    if (field.number == MAPPING_FILE || field.number == MAPPING_BUILD_ID) {
      int status = check_string(check, field.value);
      if (status != 0) return status;
    }
  }
  if (id != check->mappings + 1)
    return fail(check, "invalid heap profile: mapping id %lu, want %lu", id, check->mappings + 1);
  if (start >= limit) return fail(check, "invalid heap profile: mapping %lu is empty", id);
  return keep_range(check, start, limit);
}

static int feed_function(struct hp_pprof_check *check, struct span in) {
  uint64_t id = 0;
  uint64_t name = 0;
  while (in.at < in.end) {
    struct field field;
    if (!read_field(&in, &field)) return malformed(check, "function");
    if (field.number == FUNCTION_ID) id = field.value;
    if (field.number == FUNCTION_NAME) name = field.value;
    if (field.number >= FUNCTION_NAME && field.number <= FUNCTION_FILE) {
      int status = check_string(check, field.value);
      if (status != 0) return status;
    }
  }
  if (id != check->functions + 1)
    return fail(check, "invalid heap profile: function id %lu, want %lu", id, check->functions + 1);
  if (name == 0) return fail(check, "invalid heap profile: function %lu has no name", id);
  check->functions++;
  return 0;
}

static int feed_line(struct hp_pprof_check *check, struct span in, uint64_t location) {
  uint64_t function = 0;
  while (in.at < in.end) {
    struct field field;
    if (!read_field(&in, &field)) return malformed(check, "line");
    if (field.number == 1) function = field.value;
  }
  if (function >= 1 && function <= check->functions) return 0;
  return fail(check, "invalid heap profile: location %lu: no function %lu", location, function);
}

static int feed_location(struct hp_pprof_check *check, struct span in) {
  uint64_t want = check->locations + 1;
  uint64_t id = 0;
  uint64_t mapping = 0;
  uint64_t address = 0;
  bool has_line = false;
  while (in.at < in.end) {
    struct field field;
    if (!read_field(&in, &field)) return malformed(check, "location");
    if (field.number == LOCATION_ID) id = field.value;
    if (field.number == LOCATION_MAPPING) mapping = field.value;
    if (field.number == LOCATION_ADDRESS) address = field.value;
    if (field.number == LOCATION_LINE && field.wire == WIRE_BYTES) {
      int status = feed_line(check, field.bytes, want);
      if (status != 0) return status;
      has_line = true;
    }
  }
  if (id != want) return fail(check, "invalid heap profile: location id %lu, want %lu", id, want);
  if (mapping > check->mappings) return fail(check, "invalid heap profile: location %lu: no mapping %lu", id, mapping);
  if (address == 0 && !has_line) {
    return fail(check, "invalid heap profile: location %lu has neither address nor function", id);
  }
  if (mapping != 0) {
    const struct hp_pprof_check_range *range = &check->ranges[mapping - 1];
    if (address < range->start || address >= range->limit) {
      return fail(check, "invalid heap profile: location %lu lies outside its mapping %lu", id, mapping);
    }
  }
  check->locations++;
  return 0;
}

static int feed_label(struct hp_pprof_check *check, struct span in) {
  uint64_t key = 0;
  bool has_value = false;
  while (in.at < in.end) {
    struct field field;
    if (!read_field(&in, &field)) return malformed(check, "label");
    if (field.number == LABEL_KEY) key = field.value;
    if (field.number == LABEL_STR || field.number == LABEL_NUM || field.number == LABEL_UNIT) {
      has_value |= field.value != 0;
    }
    if (field.number != LABEL_NUM) {
      int status = check_string(check, field.value);
      if (status != 0) return status;
    }
  }
  if (key != 0 && has_value) return 0;
  return fail(check, "invalid heap profile: sample %lu has a label without key or value", check->samples);
}

static int check_values(struct hp_pprof_check *check, const int64_t *values, uint64_t count) {
  if (count != check->types) return fail(check, "mismatch: sample has %lu values vs. %lu types", count, check->types);
  int64_t any = 0;
  for (uint64_t i = 0; i < count; i++) {
    if (values[i] < 0)
      return fail(check, "invalid heap profile: sample %lu has a negative value at index %lu", check->samples, i);
    any |= values[i];
  }
  if (any == 0) return fail(check, "invalid heap profile: sample %lu is all zero", check->samples);
  if (count < HP_VALUES) return 0;
  if (check->kind == HP_KIND_HEAP) {
    if ((values[HP_ALLOC_OBJECTS] | values[HP_ALLOC_BYTES]) == 0) return 0;
    return fail(check, "invalid heap profile: sample %lu has alloc values in a heap profile", check->samples);
  }
  if (values[HP_INUSE_OBJECTS] > values[HP_ALLOC_OBJECTS] || values[HP_INUSE_BYTES] > values[HP_ALLOC_BYTES]) {
    return fail(check, "invalid heap profile: sample %lu has more in use than allocated", check->samples);
  }
  return 0;
}

static int bad_location(struct hp_pprof_check *check, uint64_t sample, uint64_t id) {
  return fail(check, "invalid heap profile: sample %lu: no location %lu", sample, id);
}

/* Most of a profile are these ids. Locations may follow the samples: that they reach to the greatest id of all is seen at
 * the end. */
static int check_location_ids(struct hp_pprof_check *check, const struct field *field, uint64_t *frames) {
  uint64_t greatest = field->wire == WIRE_VARINT ? field->value : 0;
  if (field->wire == WIRE_VARINT) {
    if (greatest == 0) return bad_location(check, check->samples, 0);
    ++*frames;
  }
  struct span in = field->wire == WIRE_VARINT ? (struct span){NULL, NULL} : field->bytes;
  for (; in.at < in.end; ++*frames) {
    uint64_t id;
    if (!read_varint(&in, &id)) return malformed(check, "sample");
    if (id == 0) return bad_location(check, check->samples, 0);
    if (id > greatest) greatest = id;
  }
  if (greatest > check->last_location) {
    check->last_location = greatest;
    check->last_location_sample = check->samples;
  }
  return 0;
}

static int feed_sample(struct hp_pprof_check *check, struct span in) {
  int status = check_types(check);
  if (status != 0) return status;
  int64_t values[HP_PPROF_TYPES_MAX];
  uint64_t value_count = 0;
  uint64_t frames = 0;
  while (in.at < in.end) {
    struct field field;
    bool is_bad = false;
    uint64_t number;
    if (!read_field(&in, &field)) return malformed(check, "sample");
    if (field.number == SAMPLE_LOCATION) {
      status = check_location_ids(check, &field, &frames);
      if (status != 0) return status;
    } else if (field.number == SAMPLE_VALUE) {
      while (next_number(&field, &number, &is_bad)) {
        if (value_count < HP_PPROF_TYPES_MAX) values[value_count] = (int64_t)number;
        value_count++;
      }
    } else if (field.number == SAMPLE_LABEL && field.wire == WIRE_BYTES) {
      status = feed_label(check, field.bytes);
      if (status != 0) return status;
    }
    if (is_bad) return malformed(check, "sample");
  }
  status = check_values(check, values, value_count);
  if (status != 0) return status;
  if (frames == 0) return fail(check, "invalid heap profile: sample %lu has no stack", check->samples);
  check->samples++;
  return 0;
}

static int feed_number_field(struct hp_pprof_check *check, struct field *field) {
  uint64_t number;
  bool is_bad = false;
  switch (field->number) {
    case PROFILE_DEFAULT_TYPE: check->default_type = field->value; return check_string(check, field->value);
    case PROFILE_DROP_FRAMES:
    case PROFILE_KEEP_FRAMES:
    case PROFILE_DOC_URL: return check_string(check, field->value);
    case PROFILE_COMMENT:
      while (next_number(field, &number, &is_bad)) {
        int status = check_string(check, number);
        if (status != 0) return status;
      }
      return is_bad ? malformed(check, "comment") : 0;
    default: return 0;
  }
}

static int feed_field(struct hp_pprof_check *check, struct field *field) {
  bool is_message =
      (field->number >= PROFILE_SAMPLE_TYPE && field->number <= PROFILE_STRING) || field->number == PROFILE_PERIOD_TYPE;
  if (!is_message) return feed_number_field(check, field);
  if (field->wire != WIRE_BYTES) return malformed(check, "profile");
  switch (field->number) {
    case PROFILE_SAMPLE_TYPE: return feed_sample_type(check, field->bytes);
    case PROFILE_SAMPLE: return feed_sample(check, field->bytes);
    case PROFILE_MAPPING: return feed_mapping(check, field->bytes);
    case PROFILE_LOCATION: return feed_location(check, field->bytes);
    case PROFILE_FUNCTION: return feed_function(check, field->bytes);
    case PROFILE_STRING: return feed_string(check, field->bytes);
    default: return feed_value_type(check, field->bytes, &check->period_name, &check->period_unit);
  }
}

/* The fields whose bit is set in `fields`. */
static int walk(struct hp_pprof_check *check, const void *bytes, size_t n, unsigned fields) {
  struct span in = {bytes, (const uint8_t *)bytes + n};
  while (in.at < in.end) {
    struct field field;
    if (!read_field(&in, &field)) return malformed(check, "profile");
    if (field.number >= PROFILE_FIELDS || (fields >> field.number & 1) == 0) continue;
    int status = feed_field(check, &field);
    if (status != 0) return status;
  }
  return 0;
}

void hp_pprof_check_begin(struct hp_pprof_check *check, enum hp_profile_kind kind, struct hp_arena *arena) {
  memset(check, 0, sizeof *check);
  check->kind = kind;
  check->arena = arena;
}

int hp_pprof_check_feed(struct hp_pprof_check *check, const void *bytes, size_t n) { return walk(check, bytes, n, ~0u); }

int hp_pprof_check_end(struct hp_pprof_check *check) {
  int status = check_types(check);
  if (status != 0) return status;
  if (check->last_location > check->locations) return bad_location(check, check->last_location_sample, check->last_location);
  if (check->strings == 0) return fail(check, "invalid heap profile: no strings");
  if (check->mappings == 0) return fail(check, "invalid heap profile: no mapping");
  if (strcmp(text_of(check, check->period_name), "space") != 0 || strcmp(text_of(check, check->period_unit), "bytes") != 0) {
    return fail(check, "invalid heap profile: period type is not space/bytes");
  }
  uint64_t last = wanted_types(check->kind) - 1;
  const char *name = text_of(check, check->default_type);
  if (strcmp(name, EXPECTED[last].name) != 0) {
    return fail(check, "invalid heap profile: default sample type is \"%s\", want \"%s\"", name, EXPECTED[last].name);
  }
  return 0;
}

int hp_pprof_check_buffer(const void *bytes, size_t n, enum hp_profile_kind kind, struct hp_arena *arena,
                          const char **out_fault) {
  static const unsigned ORDER[] = {1u << PROFILE_STRING,   ~0x7Fu | 1u << PROFILE_SAMPLE_TYPE,
                                   1u << PROFILE_MAPPING,  1u << PROFILE_FUNCTION,
                                   1u << PROFILE_LOCATION, 1u << PROFILE_SAMPLE};
  *out_fault = "";
  struct hp_pprof_check *check = hp_arena_alloc(arena, sizeof *check);
  if (check == NULL) return -ENOMEM;
  hp_pprof_check_begin(check, kind, arena);
  int status = 0;
  for (size_t i = 0; status == 0 && i < HP_ARRAY_LENGTH(ORDER); i++) status = walk(check, bytes, n, ORDER[i]);
  if (status == 0) status = hp_pprof_check_end(check);
  *out_fault = check->fault;
  return status;
}
