/* SPDX-License-Identifier: MIT
 * view_frames.c - see view_frames.h. The report (report.h) says which row each line of the profile belongs to; rows become
 * frames.
 */
#include "view_frames.h"

#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "path_clean.h"
#include "report.h"

void hp_view_frames_init(struct hp_view_frames *frames, bool by_line) {
  memset(frames, 0, sizeof *frames);
  frames->texts = hp_profile_new();
  frames->by_line = by_line;
}

void hp_view_frames_free(struct hp_view_frames *frames) {
  hp_profile_free(frames->texts);
  free(frames->frames);
  memset(frames, 0, sizeof *frames);
}

void hp_view_ids_free(struct hp_view_ids *ids) {
  free(ids->of_line);
  free(ids->of_location);
  memset(ids, 0, sizeof *ids);
}

static uint32_t frame_of_row(struct hp_view_frames *frames, const struct hp_report_row *row) {
  const char *function = row->function;
  struct hp_function key = {.name = hp_profile_intern(frames->texts, hp_report_portable_name(function))};
  if (frames->by_line) {
    key.file = hp_profile_intern(frames->texts, row->file);
    key.start_line = row->line;
  }
  uint32_t id = hp_profile_intern_function(frames->texts, &key);
  if (id < frames->count) return id;
  hp_array_reserve(&frames->frames, &frames->capacity, id + 1, sizeof *frames->frames);
  frames->frames[id] =
      (struct hp_view_frame){.name = hp_profile_intern(frames->texts, function), .file = key.file, .line = key.start_line};
  frames->count = id + 1;
  return id;
}

/* Fills in what the row does not say: the binary, and (not by line) the file the function is in. */
static void describe(struct hp_view_frames *frames, const struct hp_profile *profile, uint32_t id, uint32_t mapping,
                     const struct hp_line *line) {
  struct hp_view_frame *frame = &frames->frames[id];
  if (frame->module == 0 && mapping != HP_NONE)
    frame->module =
        hp_profile_intern(frames->texts, hp_path_base_name(hp_profile_text(profile, profile->mappings[mapping].file)));
  if (frame->file == 0 && line != NULL && line->function != HP_NONE) {
    const struct hp_function *function = &profile->functions[line->function];
    frame->file = hp_profile_intern(frames->texts, hp_profile_text(profile, function->file));
    if (frame->line == 0) frame->line = function->start_line;
  }
}

int hp_view_frames_add(struct hp_view_frames *frames, const struct hp_profile *profile, struct hp_view_ids *out,
                       struct hp_error *error) {
  struct hp_report_options options = {.by_line = frames->by_line};
  struct hp_report report;
  if (hp_report_build(profile, &options, &report, error) != 0) return -1;
  out->of_line = hp_alloc_zeroed(profile->line_count + 1, sizeof *out->of_line);
  out->of_location = hp_alloc_zeroed(profile->location_count + 1, sizeof *out->of_location);
  uint32_t *of_row = hp_alloc_zeroed(report.row_count + 1, sizeof *of_row);
  for (size_t i = 0; i < report.row_count; i++) of_row[i] = frame_of_row(frames, &report.rows[i]);
  for (size_t i = 0; i < profile->location_count; i++) {
    const struct hp_location *location = &profile->locations[i];
    if (location->line_count == 0 && report.location_rows[i] != HP_NONE) {
      out->of_location[i] = of_row[report.location_rows[i]];
      describe(frames, profile, out->of_location[i], location->mapping, NULL);
    }
    for (uint32_t k = location->first_line; k < location->first_line + location->line_count; k++) {
      if (report.line_rows[k] == HP_NONE) continue;
      out->of_line[k] = of_row[report.line_rows[k]];
      describe(frames, profile, out->of_line[k], location->mapping, &profile->lines[k]);
    }
  }
  free(of_row);
  hp_report_free(&report);
  return 0;
}

void hp_view_stack_walk(const struct hp_profile *profile, const struct hp_view_ids *ids, size_t sample,
                        bool (*visit)(void *context, uint32_t frame), void *context) {
  const struct hp_sample *stack = &profile->samples[sample];
  for (uint32_t i = stack->location_count; i > 0; i--) {
    uint32_t at = profile->stack_locations[stack->first_location + i - 1];
    const struct hp_location *location = &profile->locations[at];
    if (location->line_count == 0 && !visit(context, ids->of_location[at])) return;
    for (uint32_t k = location->line_count; k > 0; k--)
      if (!visit(context, ids->of_line[location->first_line + k - 1])) return;
  }
}
