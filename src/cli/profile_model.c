/* SPDX-License-Identifier: MIT
 * profile_model.c - see profile_model.h. Growth of the arrays, the strings' arena, and interning.
 *
 * The intern tables are built when first asked for: a profile that is only read never pays for them.
 */
#include "profile_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "byte_hash.h"
#include "cli_memory.h"

enum { CAP_TYPES, CAP_SAMPLES, CAP_VALUES, CAP_STACKS, CAP_LABELS, CAP_MAPPINGS, CAP_LOCATIONS, CAP_LINES, CAP_FUNCTIONS };
_Static_assert(CAP_FUNCTIONS + 1 == sizeof((struct hp_profile *)0)->capacity / sizeof(size_t), "one capacity an array");

/* Strings and comments are counted here, beside their bytes. */
struct hp_text_arena {
  struct text_block *blocks;
  size_t bytes;
  size_t string_capacity;
  size_t comment_capacity;
};

struct text_block {
  struct text_block *next;
  size_t used;
  size_t size;
  char text[];
};

enum { TEXT_BLOCK_BYTES = 64 * 1024 };

/* Open addressing over indices; a slot holds index + 1, 0 is empty. At most half full. Of equal entries only the first has a
 * slot, so that a file of a million equal strings makes no million-long probe. */
struct index_table {
  uint32_t *slots;
  size_t slot_count; /* a power of two, or 0 */
  size_t used;
  size_t known; /* entries of the profile considered so far */
};

struct hp_intern {
  struct index_table strings;
  struct index_table functions;
};

static void *checked_reserve(void *array, size_t *capacity, size_t count, size_t size_bytes) {
  if (count > HP_MODEL_COUNT_MAX) { /* 4 G rows of anything: the reader's limit on bytes stops files long before */
    fputs("heapprof: profile too large\n", stderr);
    exit(1);
  }
  hp_array_reserve(array, capacity, count, size_bytes);
  return array;
}

#define RESERVE(profile, field, which, count) \
  checked_reserve(&(profile)->field, &(profile)->capacity[which], count, sizeof *(profile)->field)

static char *text_store(struct hp_text_arena *arena, const char *text, size_t length) {
  struct text_block *block = arena->blocks;
  if (block == NULL || block->size - block->used < length + 1) {
    size_t size = length + 1 > TEXT_BLOCK_BYTES ? length + 1 : TEXT_BLOCK_BYTES;
    block = hp_alloc(sizeof *block + size);
    block->next = arena->blocks;
    block->used = 0;
    block->size = size;
    arena->blocks = block;
    arena->bytes += sizeof *block + size;
  }
  char *copy = block->text + block->used;
  memcpy(copy, text, length);
  copy[length] = '\0';
  block->used += length + 1;
  return copy;
}

struct hp_profile *hp_profile_new(void) {
  struct hp_profile *profile = hp_alloc_zeroed(1, sizeof *profile);
  profile->text = hp_alloc_zeroed(1, sizeof *profile->text);
  hp_profile_append_string(profile, "", 0);
  return profile;
}

void hp_profile_free(struct hp_profile *profile) {
  if (profile == NULL) return;
  for (struct text_block *block = profile->text->blocks, *next; block != NULL; block = next) {
    next = block->next;
    free(block);
  }
  free(profile->text);
  if (profile->intern != NULL) {
    free(profile->intern->strings.slots);
    free(profile->intern->functions.slots);
    free(profile->intern);
  }
  free(profile->types);
  free(profile->samples);
  free(profile->values);
  free(profile->stack_locations);
  free(profile->labels);
  free(profile->mappings);
  free(profile->locations);
  free(profile->lines);
  free(profile->functions);
  free(profile->strings);
  free(profile->comments);
  free(profile);
}

uint32_t hp_profile_append_string(struct hp_profile *profile, const char *text, size_t length_bytes) {
  checked_reserve(&profile->strings, &profile->text->string_capacity, profile->string_count + 1, sizeof *profile->strings);
  profile->strings[profile->string_count] = text_store(profile->text, text, length_bytes);
  return (uint32_t)profile->string_count++;
}

uint32_t hp_profile_append_type(struct hp_profile *profile, const char *type, const char *unit) {
  struct hp_value_type value_type = {hp_profile_intern(profile, type), hp_profile_intern(profile, unit)};
  RESERVE(profile, types, CAP_TYPES, profile->type_count + 1);
  profile->types[profile->type_count] = value_type;
  return (uint32_t)profile->type_count++;
}

uint32_t hp_profile_append_mapping(struct hp_profile *profile, const struct hp_mapping *mapping) {
  RESERVE(profile, mappings, CAP_MAPPINGS, profile->mapping_count + 1);
  profile->mappings[profile->mapping_count] = *mapping;
  return (uint32_t)profile->mapping_count++;
}

uint32_t hp_profile_append_function(struct hp_profile *profile, const struct hp_function *function) {
  RESERVE(profile, functions, CAP_FUNCTIONS, profile->function_count + 1);
  profile->functions[profile->function_count] = *function;
  return (uint32_t)profile->function_count++;
}

uint32_t hp_profile_append_location(struct hp_profile *profile, const struct hp_location *location) {
  RESERVE(profile, locations, CAP_LOCATIONS, profile->location_count + 1);
  profile->locations[profile->location_count] = *location;
  return (uint32_t)profile->location_count++;
}

uint32_t hp_profile_append_line(struct hp_profile *profile, const struct hp_line *line) {
  RESERVE(profile, lines, CAP_LINES, profile->line_count + 1);
  profile->lines[profile->line_count] = *line;
  return (uint32_t)profile->line_count++;
}

uint32_t hp_profile_append_sample(struct hp_profile *profile, const uint32_t *locations, size_t location_count,
                                  const int64_t *values) {
  RESERVE(profile, samples, CAP_SAMPLES, profile->sample_count + 1);
  RESERVE(profile, values, CAP_VALUES, (profile->sample_count + 1) * profile->type_count);
  RESERVE(profile, stack_locations, CAP_STACKS, profile->stack_location_count + location_count);
  struct hp_sample *sample = &profile->samples[profile->sample_count];
  sample->first_location = (uint32_t)profile->stack_location_count;
  sample->location_count = (uint32_t)location_count;
  sample->first_label = (uint32_t)profile->label_count;
  sample->label_count = 0;
  if (location_count != 0)
    memcpy(profile->stack_locations + profile->stack_location_count, locations, location_count * sizeof *locations);
  profile->stack_location_count += location_count;
  if (profile->type_count != 0)
    memcpy(profile->values + profile->sample_count * profile->type_count, values, profile->type_count * sizeof *values);
  return (uint32_t)profile->sample_count++;
}

void hp_profile_append_label(struct hp_profile *profile, const struct hp_label *label) {
  RESERVE(profile, labels, CAP_LABELS, profile->label_count + 1);
  profile->labels[profile->label_count++] = *label;
  profile->samples[profile->sample_count - 1].label_count++;
}

void hp_profile_append_comment(struct hp_profile *profile, const char *text) {
  uint32_t string = hp_profile_intern(profile, text);
  checked_reserve(&profile->comments, &profile->text->comment_capacity, profile->comment_count + 1,
                  sizeof *profile->comments);
  profile->comments[profile->comment_count++] = string;
}

static uint64_t hash_entry(const struct hp_profile *profile, bool is_function, uint32_t index) {
  if (!is_function) return hp_byte_hash(profile->strings[index], strlen(profile->strings[index]));
  const struct hp_function *function = &profile->functions[index];
  uint64_t words[4] = {function->name, function->system_name, function->file, (uint64_t)function->start_line};
  return hp_byte_hash(words, sizeof words);
}

static bool entries_equal(const struct hp_profile *profile, bool is_function, uint32_t a, uint32_t b) {
  if (!is_function) return strcmp(profile->strings[a], profile->strings[b]) == 0;
  const struct hp_function *x = &profile->functions[a], *y = &profile->functions[b];
  return x->name == y->name && x->system_name == y->system_name && x->file == y->file && x->start_line == y->start_line;
}

/* The first entry equal to `index`, which may be index itself: then it has its slot now. */
static uint32_t table_insert(const struct hp_profile *profile, struct index_table *table, bool is_function, uint32_t index) {
  size_t mask = table->slot_count - 1;
  size_t slot = hash_entry(profile, is_function, index) & mask;
  for (; table->slots[slot] != 0; slot = (slot + 1) & mask)
    if (entries_equal(profile, is_function, table->slots[slot] - 1, index)) return table->slots[slot] - 1;
  table->slots[slot] = index + 1;
  table->used++;
  return index;
}

/* A table that knows every entry of the profile (entries may have been appended without it) and has room for one more. */
static struct index_table *table_ready(struct hp_profile *profile, bool is_function) {
  if (profile->intern == NULL) profile->intern = hp_alloc_zeroed(1, sizeof *profile->intern);
  struct index_table *table = is_function ? &profile->intern->functions : &profile->intern->strings;
  size_t count = is_function ? profile->function_count : profile->string_count;
  if ((table->used + count - table->known + 1) * 2 > table->slot_count) {
    size_t slots = 64;
    while (slots < count * 4) slots *= 2;
    free(table->slots);
    table->slots = hp_alloc_cleared(slots, sizeof *table->slots);
    table->slot_count = slots;
    table->used = table->known = 0;
  }
  while (table->known < count) table_insert(profile, table, is_function, (uint32_t)table->known++);
  return table;
}

uint32_t hp_profile_intern(struct hp_profile *profile, const char *text) {
  if (text[0] == '\0') return 0;
  struct index_table *table = table_ready(profile, false);
  size_t length = strlen(text);
  size_t mask = table->slot_count - 1;
  size_t slot = hp_byte_hash(text, length) & mask;
  for (; table->slots[slot] != 0; slot = (slot + 1) & mask)
    if (strcmp(profile->strings[table->slots[slot] - 1], text) == 0) return table->slots[slot] - 1;
  uint32_t index = hp_profile_append_string(profile, text, length);
  table->slots[slot] = index + 1;
  table->used++;
  table->known++;
  return index;
}

/* The new entry is tried against the table: if an equal one is there, the new one goes again. */
uint32_t hp_profile_intern_function(struct hp_profile *profile, const struct hp_function *function) {
  struct index_table *table = table_ready(profile, true);
  uint32_t index = hp_profile_append_function(profile, function);
  uint32_t found = table_insert(profile, table, true, index);
  if (found == index)
    table->known++;
  else
    profile->function_count--;
  return found;
}

uint32_t hp_profile_type_find(const struct hp_profile *profile, const char *name) {
  if (name == NULL || name[0] == '\0') {
    name = hp_profile_text(profile, profile->default_type);
    if (name[0] == '\0') return (uint32_t)profile->type_count - 1;
    uint32_t named = hp_profile_type_find(profile, name);
    return named != HP_NONE ? named : (uint32_t)profile->type_count - 1;
  }
  for (size_t i = 0; i < profile->type_count; i++)
    if (strcmp(hp_profile_text(profile, profile->types[i].type), name) == 0) return (uint32_t)i;
  return HP_NONE;
}

static bool has_ending(const char *name, size_t prefix, const char *ending) { return strcmp(name + prefix, ending) == 0; }

uint32_t hp_profile_type_partner(const struct hp_profile *profile, uint32_t type) {
  static const char *const endings[][2] = {{"objects", "space"}, {"objects", "bytes"}, {"count", "size"}};
  const char *name = hp_profile_text(profile, profile->types[type].type);
  const char *underscore = strrchr(name, '_');
  size_t prefix = underscore != NULL ? (size_t)(underscore - name) + 1 : 0;
  for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++) {
    for (int side = 0; side < 2; side++) {
      if (!has_ending(name, prefix, endings[e][side])) continue;
      for (size_t i = 0; i < profile->type_count; i++) {
        const char *other = hp_profile_text(profile, profile->types[i].type);
        if (strncmp(other, name, prefix) == 0 && has_ending(other, prefix, endings[e][!side])) return (uint32_t)i;
      }
    }
  }
  return HP_NONE;
}

static const char difference_mark[] = "heapprof.difference", difference_mark_of_one[] = "heapprof.difference one_process=1";

void hp_profile_mark_difference(struct hp_profile *profile, bool of_one_process) {
  hp_profile_append_comment(profile, of_one_process ? difference_mark_of_one : difference_mark);
}

bool hp_profile_is_difference_mark(const char *comment) {
  return strcmp(comment, difference_mark) == 0 || strcmp(comment, difference_mark_of_one) == 0;
}

bool hp_profile_has_comment(const struct hp_profile *profile, const char *text) {
  for (size_t i = 0; i < profile->comment_count; i++)
    if (strcmp(hp_profile_text(profile, profile->comments[i]), text) == 0) return true;
  return false;
}

uint32_t hp_profile_error_partner(const struct hp_profile *profile, uint32_t type) {
  bool is_allocated = strncmp(hp_profile_text(profile, profile->types[type].type), "alloc_", strlen("alloc_")) == 0;
  bool has_doubt = hp_profile_has_comment(profile, difference_mark) ||
                   (!is_allocated && hp_profile_has_comment(profile, difference_mark_of_one));
  if (has_doubt && profile->period != 1) return HP_NONE;
  if (profile->period < 1 || strcmp(hp_profile_text(profile, profile->period_type.unit), "bytes") != 0) return HP_NONE;
  return hp_profile_type_partner(profile, type);
}

size_t hp_profile_memory_bytes(const struct hp_profile *profile) {
  const size_t *capacity = profile->capacity;
  return profile->text->bytes + profile->text->string_capacity * sizeof(char *) +
         profile->text->comment_capacity * sizeof(uint32_t) + capacity[CAP_TYPES] * sizeof(struct hp_value_type) +
         capacity[CAP_SAMPLES] * sizeof(struct hp_sample) + capacity[CAP_VALUES] * sizeof(int64_t) +
         capacity[CAP_STACKS] * sizeof(uint32_t) + capacity[CAP_LABELS] * sizeof(struct hp_label) +
         capacity[CAP_MAPPINGS] * sizeof(struct hp_mapping) + capacity[CAP_LOCATIONS] * sizeof(struct hp_location) +
         capacity[CAP_LINES] * sizeof(struct hp_line) + capacity[CAP_FUNCTIONS] * sizeof(struct hp_function);
}

bool hp_profile_has_names(const struct hp_profile *profile) {
  for (size_t i = 0; i < profile->location_count; i++)
    for (uint32_t l = 0; l < profile->locations[i].line_count; l++) {
      uint32_t function = profile->lines[profile->locations[i].first_line + l].function;
      if (function != HP_NONE && profile->functions[function].name != 0) return true;
    }
  return false;
}
