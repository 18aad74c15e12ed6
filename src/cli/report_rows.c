/* SPDX-License-Identifier: MIT
 * report_rows.c - see report_rows.h.
 */
#include "report_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "byte_hash.h"
#include "cli_memory.h"
#include "path_clean.h"

/* What is worked out once an entry of the profile and then remembered; HP_NONE: not yet. */
struct memory {
  uint32_t *text_of_string;
  uint32_t *row_of_function; /* not by_line */
  uint32_t *row_of_mapping;  /* not by_line, frames without a name; the last: in no mapping */
};

static bool text_equal(const void *context, uint32_t index, const void *key) {
  const struct hp_report_rows *rows = context;
  return strcmp(rows->texts[index], key) == 0;
}

static uint32_t text_of(struct hp_report_rows *rows, const char *text) {
  uint64_t hash = hp_byte_hash(text, strlen(text));
  uint32_t found = hp_index_table_find_or_add(&rows->text_table, hash, text_equal, rows, text, rows->text_count);
  if (found < rows->text_count) return found;
  hp_array_reserve(&rows->texts, &rows->text_capacity, rows->text_count + 1, sizeof *rows->texts);
  rows->texts[rows->text_count++] = text;
  return found;
}

static uint32_t text_of_string(struct hp_report_rows *rows, struct memory *memory, uint32_t string) {
  uint32_t *text = &memory->text_of_string[string];
  if (*text == HP_NONE) *text = text_of(rows, hp_profile_text(rows->profile, string));
  return *text;
}

static bool key_equal(const void *context, uint32_t index, const void *key) {
  const struct hp_report_rows *rows = context;
  const struct hp_row_key *known = &rows->keys[index], *wanted = key;
  return known->function == wanted->function && known->file == wanted->file && known->line == wanted->line;
}

static uint32_t row_of_key(struct hp_report_rows *rows, const struct hp_row_key *key) {
  uint64_t hash = hp_byte_hash(key, sizeof *key);
  uint32_t found = hp_index_table_find_or_add(&rows->key_table, hash, key_equal, rows, key, rows->count);
  if (found < rows->count) return found;
  hp_array_reserve(&rows->keys, &rows->key_capacity, rows->count + 1, sizeof *rows->keys);
  rows->keys[rows->count++] = *key;
  return found;
}

/* A name for code without one: "[libfoo.so]" by function, as pprof has it, "0x7f12 libfoo.so+0x34" by line. */
static const char *make_name(struct hp_report_rows *rows, const struct hp_location *location) {
  const struct hp_profile *profile = rows->profile;
  const struct hp_mapping *mapping = location->mapping != HP_NONE ? &profile->mappings[location->mapping] : NULL;
  const char *file = mapping != NULL ? hp_path_base_name(hp_profile_text(profile, mapping->file)) : "";
  char *name;
  if (!rows->by_line)
    name = file[0] != '\0' ? hp_format("[%.200s]", file) : hp_strdup("<unknown>");
  else if (mapping == NULL)
    name = hp_format("0x%" PRIx64, location->address);
  else
    name = hp_format("0x%" PRIx64 " %.200s+0x%" PRIx64, location->address, file,
                     location->address - mapping->start + mapping->offset);
  hp_array_reserve(&rows->made, &rows->made_capacity, rows->made_count + 1, sizeof *rows->made);
  rows->made[rows->made_count++] = name;
  return name;
}

static uint32_t row_without_name(struct hp_report_rows *rows, struct memory *memory, const struct hp_location *location) {
  if (rows->by_line)
    return row_of_key(rows, &(struct hp_row_key){text_of(rows, make_name(rows, location)), text_of(rows, ""), 0});
  uint32_t *row = &memory->row_of_mapping[location->mapping != HP_NONE ? location->mapping : rows->profile->mapping_count];
  if (*row == HP_NONE) *row = text_of(rows, make_name(rows, location));
  return *row;
}

static uint32_t row_of_line(struct hp_report_rows *rows, struct memory *memory, const struct hp_location *location,
                            const struct hp_line *line) {
  if (line->function == HP_NONE) return row_without_name(rows, memory, location);
  if (!rows->by_line && memory->row_of_function[line->function] != HP_NONE) return memory->row_of_function[line->function];
  const struct hp_function *function = &rows->profile->functions[line->function];
  if (hp_profile_text(rows->profile, function->name)[0] == '\0') return row_without_name(rows, memory, location);
  uint32_t name = text_of_string(rows, memory, function->name);
  if (!rows->by_line) return memory->row_of_function[line->function] = name;
  return row_of_key(rows, &(struct hp_row_key){name, text_of_string(rows, memory, function->file), line->line});
}

void hp_report_rows_find(struct hp_report_rows *rows, const struct hp_profile *profile, bool by_line) {
  *rows = (struct hp_report_rows){.profile = profile, .by_line = by_line};
  struct memory memory = {.text_of_string = hp_alloc_none(profile->string_count),
                          .row_of_function = hp_alloc_none(profile->function_count),
                          .row_of_mapping = hp_alloc_none(profile->mapping_count + 1)};
  hp_index_table_reserve(&rows->text_table,
                         profile->function_count < profile->string_count ? profile->function_count : profile->string_count);
  rows->of_line = hp_alloc(profile->line_count * sizeof *rows->of_line);
  rows->of_location = hp_alloc(profile->location_count * sizeof *rows->of_location);
  for (size_t i = 0; i < profile->location_count; i++) {
    const struct hp_location *location = &profile->locations[i];
    uint32_t only = HP_NONE;
    if (location->line_count == 0) only = row_without_name(rows, &memory, location);
    for (uint32_t l = location->first_line; l < location->first_line + location->line_count; l++)
      rows->of_line[l] = row_of_line(rows, &memory, location, &profile->lines[l]);
    if (location->line_count == 1) only = rows->of_line[location->first_line];
    rows->of_location[i] = only;
  }
  if (!by_line) rows->count = rows->text_count;
  free(memory.text_of_string);
  free(memory.row_of_function);
  free(memory.row_of_mapping);
}

struct hp_report_row hp_report_rows_name(const struct hp_report_rows *rows, uint32_t row) {
  if (!rows->by_line) return (struct hp_report_row){.function = rows->texts[row], .file = ""};
  const struct hp_row_key *key = &rows->keys[row];
  return (struct hp_report_row){.function = rows->texts[key->function], .file = rows->texts[key->file], .line = key->line};
}

void hp_report_rows_free(struct hp_report_rows *rows) {
  for (size_t i = 0; i < rows->made_count; i++) free(rows->made[i]);
  free(rows->made);
  free(rows->texts);
  free(rows->keys);
  hp_index_table_free(&rows->text_table);
  hp_index_table_free(&rows->key_table);
  free(rows->of_line);
  free(rows->of_location);
  *rows = (struct hp_report_rows){0};
}
