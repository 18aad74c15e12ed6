/* SPDX-License-Identifier: MIT
 * profile_writer.c - see profile_writer.h.
 *
 * Each sub-message is built on the stack, packed by protobuf-c into one reused buffer and deflated; the whole profile never
 * exists as a tree or as raw bytes. A field of Profile is its tag, its length and the packed sub-message.
 */
#include "profile_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "cli_memory.h"
#include "output_file.h"
#include "profile.pb-c.h"

enum { OUTPUT_BYTES = 64 * 1024 };

/* Field numbers of Profile. */
enum { FIELD_SAMPLE_TYPE = 1, FIELD_SAMPLE, FIELD_MAPPING, FIELD_LOCATION, FIELD_FUNCTION, FIELD_STRING_TABLE };

struct writer {
  const struct hp_profile *profile;
  int fd; /* -1: into memory */
  z_stream deflater;
  unsigned char *output;
  size_t output_room;
  unsigned char *memory;
  size_t memory_count, memory_room;
  uint8_t *packed;
  size_t packed_room;
  uint64_t *ids; /* scratch: the stack of one sample */
  size_t ids_room;
  int failed_errno; /* of the first write that failed; then nothing more is written */
};

static void emit(struct writer *writer, const unsigned char *bytes, size_t count) {
  if (writer->fd < 0) {
    hp_array_reserve(&writer->memory, &writer->memory_room, writer->memory_count + count, 1);
    memcpy(writer->memory + writer->memory_count, bytes, count);
    writer->memory_count += count;
    return;
  }
  while (count > 0 && writer->failed_errno == 0) {
    ssize_t done = write(writer->fd, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      writer->failed_errno = errno;
      return;
    }
    bytes += done;
    count -= (size_t)done;
  }
}

static void compress_bytes(struct writer *writer, const void *bytes, size_t count, int flush) {
  writer->deflater.next_in = (Bytef *)(uintptr_t)bytes;
  writer->deflater.avail_in = (uInt)count;
  do {
    writer->deflater.next_out = writer->output;
    writer->deflater.avail_out = OUTPUT_BYTES;
    deflate(&writer->deflater, flush);
    emit(writer, writer->output, OUTPUT_BYTES - writer->deflater.avail_out);
  } while (writer->deflater.avail_out == 0);
}

static size_t put_varint(uint8_t *out, uint64_t value) {
  size_t length = 0;
  for (; value >= 0x80; value >>= 7) out[length++] = (uint8_t)(value | 0x80);
  out[length++] = (uint8_t)value;
  return length;
}

/* Tag and length of a length-delimited field. */
static void write_head(struct writer *writer, unsigned field, size_t length) {
  uint8_t head[16];
  size_t count = put_varint(head, field << 3 | 2);
  count += put_varint(head + count, length);
  compress_bytes(writer, head, count, Z_NO_FLUSH);
}

/* Into writer->packed; returns its length. */
static size_t pack(struct writer *writer, const ProtobufCMessage *message) {
  hp_array_reserve(&writer->packed, &writer->packed_room, protobuf_c_message_get_packed_size(message), 1);
  return protobuf_c_message_pack(message, writer->packed);
}

static void write_message(struct writer *writer, unsigned field, const ProtobufCMessage *message) {
  size_t length = pack(writer, message);
  write_head(writer, field, length);
  compress_bytes(writer, writer->packed, length, Z_NO_FLUSH);
}

/* A type and its unit, as the message that both sample types and the period have. */
static Perftools__Profiles__ValueType value_type(const struct hp_value_type *from) {
  Perftools__Profiles__ValueType message = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
  message.type = from->type;
  message.unit = from->unit;
  return message;
}

static void write_type(struct writer *writer, size_t index) {
  Perftools__Profiles__ValueType message = value_type(&writer->profile->types[index]);
  write_message(writer, FIELD_SAMPLE_TYPE, &message.base);
}

static void write_string(struct writer *writer, size_t index) {
  const char *text = writer->profile->strings[index];
  size_t length = strlen(text);
  write_head(writer, FIELD_STRING_TABLE, length);
  compress_bytes(writer, text, length, Z_NO_FLUSH);
}

static void write_sample(struct writer *writer, size_t index) {
  const struct hp_profile *profile = writer->profile;
  const struct hp_sample *sample = &profile->samples[index];
  hp_array_reserve(&writer->ids, &writer->ids_room, sample->location_count, sizeof *writer->ids);
  for (uint32_t i = 0; i < sample->location_count; i++)
    writer->ids[i] = (uint64_t)profile->stack_locations[sample->first_location + i] + 1;
  Perftools__Profiles__Label *labels = hp_alloc(sample->label_count * sizeof *labels);
  Perftools__Profiles__Label **label_pointers = hp_alloc(sample->label_count * sizeof *label_pointers);
  for (uint32_t i = 0; i < sample->label_count; i++) {
    const struct hp_label *label = &profile->labels[sample->first_label + i];
    perftools__profiles__label__init(&labels[i]);
    labels[i].key = label->key;
    labels[i].str = label->str;
    labels[i].num = label->num;
    labels[i].num_unit = label->unit;
    label_pointers[i] = &labels[i];
  }
  Perftools__Profiles__Sample message = PERFTOOLS__PROFILES__SAMPLE__INIT;
  message.n_location_id = sample->location_count;
  message.location_id = writer->ids;
  message.n_value = profile->type_count;
  message.value = profile->values + index * profile->type_count;
  message.n_label = sample->label_count;
  message.label = label_pointers;
  write_message(writer, FIELD_SAMPLE, &message.base);
  free(labels);
  free(label_pointers);
}

static void write_mapping(struct writer *writer, size_t index) {
  const struct hp_mapping *mapping = &writer->profile->mappings[index];
  Perftools__Profiles__Mapping message = PERFTOOLS__PROFILES__MAPPING__INIT;
  message.id = index + 1;
  message.memory_start = mapping->start;
  message.memory_limit = mapping->limit;
  message.file_offset = mapping->offset;
  message.filename = mapping->file;
  message.build_id = mapping->build_id;
  message.has_functions = mapping->has_functions;
  message.has_filenames = mapping->has_filenames;
  message.has_line_numbers = mapping->has_line_numbers;
  message.has_inline_frames = mapping->has_inline_frames;
  write_message(writer, FIELD_MAPPING, &message.base);
}

static void write_location(struct writer *writer, size_t index) {
  const struct hp_profile *profile = writer->profile;
  const struct hp_location *location = &profile->locations[index];
  Perftools__Profiles__Line *lines = hp_alloc(location->line_count * sizeof *lines);
  Perftools__Profiles__Line **line_pointers = hp_alloc(location->line_count * sizeof *line_pointers);
  for (uint32_t i = 0; i < location->line_count; i++) {
    const struct hp_line *line = &profile->lines[location->first_line + i];
    perftools__profiles__line__init(&lines[i]);
    lines[i].function_id = line->function == HP_NONE ? 0 : (uint64_t)line->function + 1;
    lines[i].line = line->line;
    lines[i].column = line->column;
    line_pointers[i] = &lines[i];
  }
  Perftools__Profiles__Location message = PERFTOOLS__PROFILES__LOCATION__INIT;
  message.id = index + 1;
  message.mapping_id = location->mapping == HP_NONE ? 0 : (uint64_t)location->mapping + 1;
  message.address = location->address;
  message.n_line = location->line_count;
  message.line = line_pointers;
  message.is_folded = location->is_folded;
  write_message(writer, FIELD_LOCATION, &message.base);
  free(lines);
  free(line_pointers);
}

static void write_function(struct writer *writer, size_t index) {
  const struct hp_function *function = &writer->profile->functions[index];
  Perftools__Profiles__Function message = PERFTOOLS__PROFILES__FUNCTION__INIT;
  message.id = index + 1;
  message.name = function->name;
  message.system_name = function->system_name;
  message.filename = function->file;
  message.start_line = function->start_line;
  write_message(writer, FIELD_FUNCTION, &message.base);
}

/* The fields that are one number or one small message: a Profile of their own, which protobuf lets follow the others. */
static void write_scalars(struct writer *writer) {
  const struct hp_profile *profile = writer->profile;
  Perftools__Profiles__ValueType period_type = value_type(&profile->period_type);
  int64_t *comments = hp_alloc(profile->comment_count * sizeof *comments);
  for (size_t i = 0; i < profile->comment_count; i++) comments[i] = profile->comments[i];
  Perftools__Profiles__Profile message = PERFTOOLS__PROFILES__PROFILE__INIT;
  message.drop_frames = profile->drop_frames;
  message.keep_frames = profile->keep_frames;
  message.time_nanos = profile->time_nanos;
  message.duration_nanos = profile->duration_nanos;
  message.period_type = &period_type;
  message.period = profile->period;
  message.n_comment = profile->comment_count;
  message.comment = comments;
  message.default_sample_type = profile->default_type;
  message.doc_url = profile->doc_url;
  size_t length = pack(writer, &message.base);
  compress_bytes(writer, writer->packed, length, Z_NO_FLUSH);
  free(comments);
}

static void write_each(struct writer *writer, size_t count, void (*write_one)(struct writer *writer, size_t index)) {
  for (size_t i = 0; i < count; i++) write_one(writer, i);
}

static void write_all(struct writer *writer) {
  const struct hp_profile *profile = writer->profile;
  write_each(writer, profile->type_count, write_type);
  write_each(writer, profile->sample_count, write_sample);
  write_each(writer, profile->mapping_count, write_mapping);
  write_each(writer, profile->location_count, write_location);
  write_each(writer, profile->function_count, write_function);
  write_each(writer, profile->string_count, write_string);
  write_scalars(writer);
  compress_bytes(writer, "", 0, Z_FINISH);
}

/* The whole profile to writer->fd or into writer->memory. Returns 0 or the errno of the failure. */
static int write_profile(struct writer *writer) {
  if (deflateInit2(&writer->deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return ENOMEM;
  writer->output = hp_alloc(OUTPUT_BYTES);
  write_all(writer);
  deflateEnd(&writer->deflater);
  free(writer->output);
  free(writer->packed);
  free(writer->ids);
  return writer->failed_errno;
}

int hp_profile_write_memory(const struct hp_profile *profile, void **out_bytes, size_t *out_length_bytes,
                            struct hp_error *error) {
  struct writer writer = {.profile = profile, .fd = -1};
  int failure = write_profile(&writer);
  if (failure != 0) return hp_error_set(error, "cannot compress the profile: %s", strerror(failure));
  *out_bytes = writer.memory;
  *out_length_bytes = writer.memory_count;
  return 0;
}

int hp_profile_write(const char *path, const struct hp_profile *profile, struct hp_error *error) {
  struct hp_output_file output;
  if (hp_output_file_open(&output, path, error) != 0) return -1;
  struct writer writer = {.profile = profile, .fd = output.fd};
  return hp_output_file_finish(&output, write_profile(&writer), error);
}
