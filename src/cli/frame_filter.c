/* SPDX-License-Identifier: MIT
 * frame_filter.c - see frame_filter.h.
 */
#include "frame_filter.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "expression.h"

enum { FILE_EXPRESSION_BYTES_MAX = 2048, NAME_BYTES_MAX = 4096 };

struct hp_filter {
  const struct hp_profile *profile;
  bool *in_focus; /* by location; null: all are */
  bool *ignored;  /* by location; null: none is */
};

/* regexec's time grows with the text; names from a file may be megabytes long. */
static bool matches(const regex_t *expression, const char *text) {
  char head[NAME_BYTES_MAX + 1];
  if (text[0] == '\0') return false;
  if (strnlen(text, NAME_BYTES_MAX + 1) > NAME_BYTES_MAX) {
    memcpy(head, text, NAME_BYTES_MAX);
    head[NAME_BYTES_MAX] = '\0';
    text = head;
  }
  return regexec(expression, text, 0, NULL, 0) == 0;
}

static bool location_matches(const struct hp_profile *profile, const struct hp_location *location, const bool *functions,
                             const bool *mappings) {
  if (location->mapping != HP_NONE && mappings[location->mapping]) return true;
  for (uint32_t l = 0; l < location->line_count; l++) {
    uint32_t function = profile->lines[location->first_line + l].function;
    if (function != HP_NONE && functions[function]) return true;
  }
  return false;
}

/* For each location: does a frame of it match? Functions and mappings are tried once each. */
static bool *match_locations(const struct hp_profile *profile, const regex_t *expression) {
  bool *functions = hp_alloc_zeroed(profile->function_count, sizeof *functions);
  bool *mappings = hp_alloc_zeroed(profile->mapping_count, sizeof *mappings);
  bool *locations = hp_alloc_zeroed(profile->location_count, sizeof *locations);
  for (size_t i = 0; i < profile->function_count; i++)
    functions[i] = matches(expression, hp_profile_text(profile, profile->functions[i].name)) ||
                   matches(expression, hp_profile_text(profile, profile->functions[i].file));
  for (size_t i = 0; i < profile->mapping_count; i++)
    mappings[i] = matches(expression, hp_profile_text(profile, profile->mappings[i].file));
  for (size_t i = 0; i < profile->location_count; i++)
    locations[i] = location_matches(profile, &profile->locations[i], functions, mappings);
  free(functions);
  free(mappings);
  return locations;
}

/* Compiles and matches; *out stays null without an expression. */
static int match(const struct hp_profile *profile, const char *what, const char *text, bool **out, struct hp_error *error) {
  if (text == NULL) return 0;
  regex_t expression;
  if (hp_expression_compile(&expression, what, text, error) != 0) return -1;
  *out = match_locations(profile, &expression);
  regfree(&expression);
  return 0;
}

struct hp_filter *hp_filter_new(const struct hp_profile *profile, const char *focus, const char *ignore,
                                struct hp_error *error) {
  struct hp_filter *filter = hp_alloc_zeroed(1, sizeof *filter);
  filter->profile = profile;
  if (match(profile, "--focus", focus, &filter->in_focus, error) == 0 &&
      match(profile, "--ignore", ignore, &filter->ignored, error) == 0)
    return filter;
  hp_filter_free(filter);
  return NULL;
}

bool hp_filter_passes(const struct hp_filter *filter, size_t sample) {
  if (filter->in_focus == NULL && filter->ignored == NULL) return true;
  const struct hp_sample *stack = &filter->profile->samples[sample];
  bool in_focus = filter->in_focus == NULL;
  for (uint32_t i = 0; i < stack->location_count; i++) {
    uint32_t location = filter->profile->stack_locations[stack->first_location + i];
    if (filter->ignored != NULL && filter->ignored[location]) return false;
    if (!in_focus && filter->in_focus[location]) in_focus = true;
  }
  return in_focus;
}

void hp_filter_free(struct hp_filter *filter) {
  if (filter == NULL) return;
  free(filter->in_focus);
  free(filter->ignored);
  free(filter);
}

/* Anchored, and only what compiles in bounded memory: repetition counts and back references can be made explosive. */
static bool compile_from_file(regex_t *out, const char *text) {
  if (text[0] == '\0' || strlen(text) > FILE_EXPRESSION_BYTES_MAX || strchr(text, '{') != NULL) return false;
  for (const char *at = text; (at = strchr(at, '\\')) != NULL; at += at[1] != '\0' ? 2 : 1)
    if (at[1] >= '0' && at[1] <= '9') return false;
  char *anchored = hp_format("^(%s)$", text);
  int result = regcomp(out, anchored, REG_EXTENDED | REG_NOSUB);
  free(anchored);
  return result == 0;
}

/* What a file's expressions are meant for: the name without its parameters, as pprof tries it. */
static char *without_parameters(const char *name) {
  static const char *const names[] = {"(anonymous namespace)", "operator()"};
  size_t length = 0;
  while (name[length] != '\0') {
    size_t step = name[length] != '(';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
      if (strncmp(name + length, names[i], strlen(names[i])) == 0) step = strlen(names[i]);
    if (step == 0) break;
    length += step;
  }
  return hp_format("%.*s", (int)length, name);
}

/* Lines of the location up to and with the outermost one that is to be dropped. */
static uint32_t dropped_lines(const struct hp_profile *profile, const struct hp_location *location, const bool *dropped) {
  for (uint32_t l = location->line_count; l > 0; l--) {
    uint32_t function = profile->lines[location->first_line + l - 1].function;
    if (function != HP_NONE && dropped[function]) return l;
  }
  return 0;
}

static void drop_from_stacks(struct hp_profile *profile, const uint32_t *cut_lines) {
  for (size_t s = 0; s < profile->sample_count; s++) {
    struct hp_sample *sample = &profile->samples[s];
    bool found_user = false;
    for (uint32_t i = sample->location_count; i > 0; i--) {
      uint32_t location = profile->stack_locations[sample->first_location + i - 1];
      if (cut_lines[location] == 0) {
        found_user = true;
        continue;
      }
      if (!found_user) continue;
      uint32_t gone = cut_lines[location] == profile->locations[location].line_count ? i : i - 1;
      sample->first_location += gone;
      sample->location_count -= gone;
      break;
    }
  }
}

void hp_profile_drop_frames(struct hp_profile *profile) {
  regex_t drop, keep;
  if (!compile_from_file(&drop, hp_profile_text(profile, profile->drop_frames))) return;
  bool has_keep = compile_from_file(&keep, hp_profile_text(profile, profile->keep_frames));
  bool *dropped = hp_alloc_zeroed(profile->function_count, sizeof *dropped);
  for (size_t i = 0; i < profile->function_count; i++) {
    char *name = without_parameters(hp_profile_text(profile, profile->functions[i].name));
    dropped[i] = matches(&drop, name) && !(has_keep && matches(&keep, name));
    free(name);
  }
  uint32_t *cut_lines = hp_alloc_zeroed(profile->location_count, sizeof *cut_lines);
  for (size_t i = 0; i < profile->location_count; i++)
    cut_lines[i] = dropped_lines(profile, &profile->locations[i], dropped);
  drop_from_stacks(profile, cut_lines);
  for (size_t i = 0; i < profile->location_count; i++) {
    struct hp_location *location = &profile->locations[i];
    if (cut_lines[i] == location->line_count) continue; /* gone from the stacks, or before the first frame of the program */
    location->first_line += cut_lines[i];
    location->line_count -= cut_lines[i];
  }
  free(cut_lines);
  free(dropped);
  regfree(&drop);
  if (has_keep) regfree(&keep);
}
