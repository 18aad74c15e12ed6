/* SPDX-License-Identifier: MIT
 * mapping_table.c - see mapping_table.h. */
#include "mapping_table.h"

#include <string.h>
#include <sys/auxv.h>

#include "module_file.h"

enum { MAPPING_PAGE = 4096 };

/* Where moved mappings go, one after the other: beyond the largest user address space there is, below the kernel's. */
static const uint64_t MAPPING_MOVED_MIN = (uint64_t)1 << 57;

static const char DELETED[] = " (deleted)";

static size_t path_length(const char *path) {
  const size_t tail = sizeof DELETED - 1;
  size_t n = strlen(path);
  if (n > tail && memcmp(path + n - tail, DELETED, tail) == 0) n -= tail;
  return n;
}

static uint32_t file_name(struct hp_mapping_table *table, const struct hp_module *module) {
  const char *path = hp_module_file(module, table->arena);
  if (module->is_executable && table->executable != NULL) path = table->executable;
  if (module->is_vdso) path = "[vdso]";
  return hp_string_interner_add(table->strings, path, path_length(path), false);
}

static uint32_t build_id(struct hp_mapping_table *table, const struct hp_module *module) {
  char text[2 * HP_BUILD_ID_MAX];
  size_t n = module->build_id_size <= HP_BUILD_ID_MAX ? module->build_id_size : 0;
  for (size_t i = 0; i < n; i++) {
    text[2 * i] = "0123456789abcdef"[module->build_id[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[module->build_id[i] & 15];
  }
  return hp_string_interner_add(table->strings, text, 2 * n, false);
}

static bool overlaps(const struct hp_mapping *a, const struct hp_mapping *b) {
  return a->start < b->limit && b->start < a->limit && a->file == b->file;
}

/* Make room for one more of `size` bytes. */
static void *grown(struct hp_arena *arena, void *list, uint32_t count, uint32_t *capacity, size_t size) {
  if (count < *capacity) return list;
  uint32_t larger = *capacity == 0 ? 64 : *capacity * 2;
  void *copy = hp_arena_alloc(arena, larger * size);
  if (copy == NULL) return NULL;
  if (count != 0) memcpy(copy, list, count * size);
  *capacity = larger;
  return copy;
}

static bool is_same_build(const struct hp_mapping *a, const struct hp_mapping *b) {
  return a->file == b->file && a->build_id == b->build_id && a->offset == b->offset &&
         a->limit - a->start == b->limit - b->start;
}

/* The earlier mapping that `mapping` is: the same build at an overlapping place, or, when it must move, one that has moved.
 * 0: none. *must_move: another build of the file has the place. */
static uint32_t find_earlier(const struct hp_mapping_table *table, const struct hp_mapping *mapping, bool *must_move) {
  uint32_t moved = 0;
  *must_move = false;
  for (uint32_t i = 0; i < table->count; i++) {
    const struct hp_mapping *other = &table->mappings[i];
    bool is_same = is_same_build(mapping, other);
    if (overlaps(mapping, other)) {
      if (is_same) return i + 1;
      *must_move = true;
    }
    if (is_same && other->start >= MAPPING_MOVED_MIN) moved = i + 1;
  }
  return *must_move ? moved : 0;
}

/* The number of `mapping`, its own or an earlier one's; *shift as in the header. 0: no memory. */
static uint32_t place_mapping(struct hp_mapping_table *table, struct hp_mapping mapping, uint64_t *shift) {
  bool must_move;
  uint32_t earlier = find_earlier(table, &mapping, &must_move);
  *shift = 0;
  if (earlier != 0) {
    *shift = table->mappings[earlier - 1].start - mapping.start;
    return earlier;
  }
  struct hp_mapping *list = grown(table->arena, table->mappings, table->count, &table->capacity, sizeof mapping);
  if (list == NULL) return 0;
  table->mappings = list;
  if (must_move) {
    *shift = table->moved_end - (mapping.start & ~(uint64_t)(MAPPING_PAGE - 1));
    mapping.start += *shift;
    mapping.limit += *shift;
    table->moved_end = (mapping.limit + MAPPING_PAGE) & ~(uint64_t)(MAPPING_PAGE - 1);
  }
  list[table->count++] = mapping;
  return table->count;
}

struct hp_module_place hp_mapping_table_use(struct hp_mapping_table *table, const struct hp_module *module) {
  struct hp_module_place place = {0};
  uint32_t known = hp_pair_map_get(&table->places, module->index, 0);
  if (known != 0) return table->place_list[known - 1];
  struct hp_mapping mapping = {.start = module->text_start,
                               .limit = module->text_end,
                               .offset = module->text_offset,
                               .file = file_name(table, module),
                               .build_id = build_id(table, module)};
  if (mapping.file == HP_STRING_NONE || mapping.build_id == HP_STRING_NONE) return place;
  struct hp_module_place *list =
      grown(table->arena, table->place_list, table->place_count, &table->place_capacity, sizeof place);
  if (list == NULL) return place;
  table->place_list = list;
  place.mapping = place_mapping(table, mapping, &place.shift);
  if (place.mapping == 0) return place;
  list[table->place_count++] = place;
  if (!hp_pair_map_put(&table->places, module->index, 0, table->place_count)) place.mapping = 0;
  return place;
}

static const struct hp_module *find_program(void) {
  for (int tries = 0; tries < 2; tries++) {
    for (const struct hp_module *module = hp_modules_first(); module != NULL; module = module->next) {
      if (module->is_executable) return module;
    }
    bool has_died = false;
    hp_modules_note(getauxval(AT_ENTRY), &has_died);
  }
  return NULL;
}

bool hp_mapping_table_init(struct hp_mapping_table *table, struct hp_arena *arena, struct hp_string_interner *strings,
                           const char *executable) {
  memset(table, 0, sizeof *table);
  table->arena = arena;
  table->strings = strings;
  table->executable = executable;
  table->places.arena = arena;
  table->moved_end = MAPPING_MOVED_MIN;
  const struct hp_module *program = find_program();
  if (program != NULL) return hp_mapping_table_use(table, program).mapping != 0;
  /* Nothing is known of the program but where its headers are; a profile has a first mapping all the same. */
  uint64_t headers = getauxval(AT_PHDR) & ~(uint64_t)(MAPPING_PAGE - 1);
  const char *path = executable != NULL ? executable : "";
  struct hp_mapping mapping = {.start = headers,
                               .limit = headers + MAPPING_PAGE,
                               .file = hp_string_interner_add(strings, path, path_length(path), false)};
  uint64_t shift;
  return mapping.file != HP_STRING_NONE && place_mapping(table, mapping, &shift) != 0;
}
