/* SPDX-License-Identifier: MIT
 * symbolize.c - see symbolize.h.
 *
 * Locations are grouped by the binary they are in and sorted by address, so that each binary is opened once, alone, and its units
 * are walked in order: memory is the profile plus one binary's indices.
 */
#include "symbolize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_error.h"
#include "cli_memory.h"
#include "id_map.h"
#include "jit_names.h"
#include "name_demangle.h"
#include "path_clean.h"
#include "symbol_module.h"

enum { NOT_FOUND_SHOWN_MAX = 20, TRIED_BYTES_MAX = 1024 };

struct place {
  uint32_t location;
  uint32_t mapping;
  uint64_t address;
};

struct run {
  struct hp_profile *profile;
  const struct hp_symbolize_options *options;
  char *debug_path;           /* for libdwfl */
  struct hp_id_map demangled; /* string index of the linker name -> of the source name */
  struct place *places;
  size_t place_count;
  struct hp_jit_names *jit;
  size_t groups_done, groups_not_found;
  char tried[TRIED_BYTES_MAX];
};

static const char deleted_suffix[] = " (deleted)";

/* The source name of a linker name, both as strings of the profile. */
static uint32_t demangled(struct run *run, uint32_t system_name) {
  if (hp_profile_text(run->profile, system_name)[0] != '_') return system_name; /* most names are in no need of it */
  uint32_t known = hp_id_map_find(&run->demangled, system_name);
  if (known != HP_NONE) return known;
  char *name = hp_demangle(hp_profile_text(run->profile, system_name));
  uint32_t result = name != NULL ? hp_profile_intern(run->profile, name) : system_name;
  free(name);
  hp_id_map_add(&run->demangled, system_name, result);
  return result;
}

static void set_lines(struct run *run, uint32_t location, const struct hp_symbol_frame *frames, size_t count) {
  struct hp_profile *profile = run->profile;
  uint32_t first = (uint32_t)profile->line_count;
  for (size_t i = 0; i < count; i++) {
    uint32_t system_name = hp_profile_intern(profile, frames[i].system_name);
    struct hp_function function = {.name = demangled(run, system_name),
                                   .system_name = system_name,
                                   .file = hp_profile_intern(profile, frames[i].file),
                                   .start_line = frames[i].start_line};
    hp_profile_append_line(
        profile, &(struct hp_line){hp_profile_intern_function(profile, &function), frames[i].line, frames[i].column});
  }
  profile->locations[location].first_line = first;
  profile->locations[location].line_count = (uint32_t)count;
}

/* Not a file: "[vdso]", "//anon", an anonymous mapping. */
static bool is_pseudo_file(const char *file) {
  return file[0] == '\0' || file[0] == '[' || strncmp(file, "//", 2) == 0 || strncmp(file, "/memfd:", 7) == 0 ||
         strncmp(file, "/dev/", 5) == 0;
}

static bool is_jitdump_file(const char *file) {
  const char *slash = strrchr(file, '/');
  return slash != NULL && strncmp(slash, "/jit-", 5) == 0 && strlen(slash) > 10 &&
         strcmp(slash + strlen(slash) - 5, ".dump") == 0;
}

static void remember_tried(struct run *run, const char *path, const char *why) {
  size_t used = strlen(run->tried);
  if (strstr(run->tried, path) != NULL) return;
  snprintf(run->tried + used, sizeof run->tried - used, "%s%s (%s)", used == 0 ? "" : ", ", path, why);
}

static struct hp_symbol_module *try_open(struct run *run, char *path, const char *build_id) {
  const char *why;
  struct hp_symbol_module *module = hp_symbol_module_open(path, build_id, run->debug_path, &why);
  if (module == NULL) remember_tried(run, path, why);
  free(path);
  return module;
}

/* A folder with the binary: as a tree that mirrors the machine, flat, or as a .build-id tree. */
static struct hp_symbol_module *open_in_folder(struct run *run, const char *folder, const char *file, const char *build_id) {
  struct hp_symbol_module *module = NULL;
  const char *slash = strrchr(file, '/');
  if (file[0] == '/') module = try_open(run, hp_format("%s%s", folder, file), build_id);
  if (module == NULL && slash != NULL && slash[1] != '\0')
    module = try_open(run, hp_format("%s%s", folder, slash), build_id);
  if (module == NULL && strlen(build_id) > 2)
    module = try_open(run, hp_format("%s/.build-id/%.2s/%s", folder, build_id, build_id + 2), build_id);
  return module;
}

/* No binary, but its debug file in a .build-id tree: good enough. */
static struct hp_symbol_module *open_debug_file(struct run *run, const char *folder, const char *build_id) {
  if (strlen(build_id) <= 2) return NULL;
  return try_open(run, hp_format("%s/.build-id/%.2s/%s.debug", folder, build_id, build_id + 2), build_id);
}

/* A build id becomes part of a path, and comes from the file: in small letters, as paths have it; "" if it is no hexadecimal number. */
static char *build_id_of(const struct hp_profile *profile, const struct hp_mapping *mapping) {
  char *text = hp_strdup(hp_profile_text(profile, mapping->build_id));
  for (char *at = text; *at != '\0'; at++)
    if (*at >= 'A' && *at <= 'F') *at = (char)(*at - 'A' + 'a');
  if (text[strspn(text, "0123456789abcdef")] != '\0') text[0] = '\0';
  return text;
}

/* Tries each of the folders given with --debug-dir, for the binary or for its debug file alone. */
static struct hp_symbol_module *open_in_folders(struct run *run, const char *file, const char *build_id, bool debug_files) {
  struct hp_symbol_module *module = NULL;
  char *folders = hp_strdup(run->options->debug_dirs != NULL ? run->options->debug_dirs : ""), *rest = folders, *folder;
  while (module == NULL && (folder = strsep(&rest, ":")) != NULL) {
    if (folder[0] == '\0') continue;
    module = debug_files ? open_debug_file(run, folder, build_id) : open_in_folder(run, folder, file, build_id);
  }
  free(folders);
  return module;
}

static struct hp_symbol_module *open_binary(struct run *run, const struct hp_mapping *mapping) {
  char *file = hp_strdup(hp_profile_text(run->profile, mapping->file));
  char *build_id = build_id_of(run->profile, mapping);
  size_t length = strlen(file), suffix = sizeof deleted_suffix - 1;
  if (length > suffix && strcmp(file + length - suffix, deleted_suffix) == 0) file[length - suffix] = '\0';
  run->tried[0] = '\0';
  struct hp_symbol_module *module = open_in_folders(run, file, build_id, false);
  if (module == NULL) module = try_open(run, hp_strdup(file), build_id);
  if (module == NULL) module = open_in_folders(run, file, build_id, true);
  if (module == NULL) module = open_debug_file(run, "/usr/lib/debug", build_id);
  const char *servers = getenv("DEBUGINFOD_URLS"), *why;
  if (module == NULL && strlen(build_id) > 2 && servers != NULL && servers[0] != '\0') {
    module = hp_symbol_module_open(NULL, build_id, run->debug_path, &why);
    if (module == NULL) remember_tried(run, servers, "debuginfod does not have it");
  }
  free(file);
  free(build_id);
  return module;
}

static void set_flags(struct hp_mapping *mapping, bool has_lines) {
  mapping->has_functions = true;
  mapping->has_filenames |= has_lines;
  mapping->has_line_numbers |= has_lines;
  mapping->has_inline_frames |= has_lines;
}

static void say_not_found(struct run *run, const struct hp_mapping *mapping, size_t count) {
  if (!run->options->report) return;
  if (run->groups_not_found++ == NOT_FOUND_SHOWN_MAX) hp_note("more binaries were not found");
  if (run->groups_not_found > NOT_FOUND_SHOWN_MAX) return;
  hp_note("not found: %s%s%s, %zu addresses; looked at %s", hp_profile_text(run->profile, mapping->file),
          mapping->build_id != 0 ? " build id " : "", hp_profile_text(run->profile, mapping->build_id), count, run->tried);
}

static void open_jit(struct run *run) {
  const struct hp_profile *profile = run->profile;
  const char *why;
  run->jit = hp_jit_names_new();
  if (run->options->jit_pid > 0) {
    char *path = hp_format("/tmp/perf-%" PRId64 ".map", run->options->jit_pid);
    if (!hp_jit_names_add(run->jit, path, &why) && run->options->report) hp_note("no JIT names: %s: %s", path, why);
    free(path);
  }
  for (size_t i = 0; i < profile->mapping_count; i++) {
    const char *file = hp_profile_text(profile, profile->mappings[i].file);
    if (is_jitdump_file(file)) hp_jit_names_add(run->jit, file, &why);
  }
}

/* Code of a JIT has its names elsewhere. */
static void resolve_jit(struct run *run, const struct place *places, size_t count) {
  if (run->jit == NULL) open_jit(run);
  for (size_t i = 0; i < count; i++) {
    const char *name = hp_jit_names_find(run->jit, places[i].address);
    if (name != NULL) set_lines(run, places[i].location, &(struct hp_symbol_frame){.system_name = name, .file = ""}, 1);
  }
}

static void show_progress(struct run *run, const struct hp_mapping *mapping, size_t count) {
  if (!run->options->progress) return;
  struct hp_error name;
  hp_error_set(&name, "%.40s", hp_path_base_name(hp_profile_text(run->profile, mapping->file)));
  fprintf(stderr, "\rsymbolizing %3.0f%%: %s, %zu addresses\033[K",
          100.0 * (double)(run->groups_done) / (double)(run->place_count + 1), name.text, count);
  fflush(stderr);
}

static void resolve_binary(struct run *run, const struct place *places, size_t count) {
  struct hp_profile *profile = run->profile;
  struct hp_mapping *mapping = &profile->mappings[places[0].mapping];
  show_progress(run, mapping, count);
  struct hp_symbol_module *module = open_binary(run, mapping);
  if (module == NULL) {
    say_not_found(run, mapping, count);
    return;
  }
  bool has_lines = hp_symbol_module_has_lines(module), found_any = false;
  struct hp_symbol_frame frames[HP_SYMBOL_FRAMES_MAX];
  for (size_t i = 0; i < count; i++) {
    mapping = &profile->mappings[places[i].mapping];
    struct hp_symbol_place place = {places[i].address, mapping->start, mapping->offset};
    size_t frame_count = hp_symbol_module_frames(module, &place, frames);
    if (frame_count == 0) continue;
    set_lines(run, places[i].location, frames, frame_count);
    set_flags(mapping, has_lines);
    found_any = true;
  }
  if (!found_any && run->options->report)
    hp_note("no symbols: %s, %zu addresses", hp_profile_text(profile, mapping->file), count);
  hp_symbol_module_close(module);
}

/* By binary (name and build id), then by address. */
static int compare_places(const void *a, const void *b, void *context) {
  const struct hp_profile *profile = context;
  const struct place *x = a, *y = b;
  if (x->mapping != y->mapping) {
    if (x->mapping == HP_NONE || y->mapping == HP_NONE) return x->mapping == HP_NONE ? 1 : -1;
    const struct hp_mapping *m = &profile->mappings[x->mapping], *n = &profile->mappings[y->mapping];
    int order = strcmp(hp_profile_text(profile, m->file), hp_profile_text(profile, n->file));
    if (order == 0) order = strcmp(hp_profile_text(profile, m->build_id), hp_profile_text(profile, n->build_id));
    if (order != 0) return order;
  }
  return (x->address > y->address) - (x->address < y->address);
}

static bool same_binary(const struct hp_profile *profile, uint32_t a, uint32_t b) {
  if (a == b) return true;
  if (a == HP_NONE || b == HP_NONE) return false;
  const struct hp_mapping *m = &profile->mappings[a], *n = &profile->mappings[b];
  return strcmp(hp_profile_text(profile, m->file), hp_profile_text(profile, n->file)) == 0 &&
         strcmp(hp_profile_text(profile, m->build_id), hp_profile_text(profile, n->build_id)) == 0;
}

/* The locations that are to be looked up: not those whose mapping says it is done, nor pseudo frames such as [truncated]. */
static void collect_places(struct run *run) {
  struct hp_profile *profile = run->profile;
  run->places = hp_alloc(profile->location_count * sizeof *run->places);
  for (size_t i = 0; i < profile->location_count; i++) {
    const struct hp_location *location = &profile->locations[i];
    bool is_done = location->mapping == HP_NONE
                       ? location->line_count != 0
                       : profile->mappings[location->mapping].has_functions && location->line_count != 0;
    if (location->address == 0 || (is_done && !run->options->force)) continue;
    run->places[run->place_count++] = (struct place){(uint32_t)i, location->mapping, location->address};
  }
  if (run->place_count != 0) qsort_r(run->places, run->place_count, sizeof *run->places, compare_places, profile);
}

static void resolve_group(struct run *run, const struct place *places, size_t count) {
  const struct hp_profile *profile = run->profile;
  uint32_t mapping = places[0].mapping;
  const char *file = mapping != HP_NONE ? hp_profile_text(profile, profile->mappings[mapping].file) : "";
  bool is_pseudo = is_pseudo_file(file) && (mapping == HP_NONE || profile->mappings[mapping].build_id == 0);
  if (is_pseudo || is_jitdump_file(file))
    resolve_jit(run, places, count);
  else
    resolve_binary(run, places, count);
  run->groups_done += count;
}

void hp_symbolize(struct hp_profile *profile, const struct hp_symbolize_options *options) {
  struct run run = {.profile = profile, .options = options};
  const char *folders = options->debug_dirs;
  run.debug_path = hp_format(":.debug:/usr/lib/debug%s%s", folders != NULL ? ":" : "", folders != NULL ? folders : "");
  collect_places(&run);
  for (size_t from = 0, to; from < run.place_count; from = to) {
    for (to = from + 1; to < run.place_count && same_binary(profile, run.places[from].mapping, run.places[to].mapping);)
      to++;
    resolve_group(&run, run.places + from, to - from);
  }
  if (options->progress) fputs("\r\033[K", stderr);
  hp_symbolize_demangle(profile);
  hp_jit_names_free(run.jit);
  hp_id_map_free(&run.demangled);
  free(run.places);
  free(run.debug_path);
}

void hp_symbolize_demangle(struct hp_profile *profile) {
  struct run run = {.profile = profile};
  for (size_t i = 0; i < profile->function_count; i++) {
    struct hp_function *function = &profile->functions[i];
    uint32_t name = demangled(&run, function->name);
    if (name == function->name) continue;
    if (function->system_name == 0) profile->functions[i].system_name = profile->functions[i].name;
    profile->functions[i].name = name;
  }
  hp_id_map_free(&run.demangled);
}

/* Is there a mapping whose lines could still be found? */
static bool lacks_lines(const struct hp_profile *profile) {
  for (size_t i = 0; i < profile->location_count; i++) {
    uint32_t mapping = profile->locations[i].mapping;
    if (mapping != HP_NONE && !profile->mappings[mapping].has_functions && !profile->mappings[mapping].has_line_numbers)
      return true;
  }
  return false;
}

void hp_symbolize_for_report(struct hp_profile *profile, const struct hp_symbolize_options *options, bool want_lines) {
  if (!hp_profile_has_names(profile) || (want_lines && lacks_lines(profile)))
    hp_symbolize(profile, options);
  else
    hp_symbolize_demangle(profile);
}
