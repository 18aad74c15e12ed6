/* SPDX-License-Identifier: MIT
 * trend_print.c - see trend_print.h.
 */
#include "trend_print.h"

#include <inttypes.h>
#include <string.h>

#include "cli_error.h"
#include "name_shorten.h"
#include "text_output.h"
#include "units.h"

enum { FRAMES_SHOWN = 4, INDENT = 7 };

static size_t suspect_count(const struct hp_trend *trend) {
  size_t count = 0;
  while (count < trend->row_count && trend->rows[count].fit.is_suspect) count++;
  return count;
}

#define LEFT_OUT_WHY "nearly all had been freed when it was taken, as at the exit"

void hp_trend_note_left_out(const struct hp_trend *trend) {
  if (trend->left_out != NULL) hp_note("left out of the trend: %s: " LEFT_OUT_WHY, trend->left_out->path);
}

void hp_trend_note_peaks(const struct hp_trend *trend) {
  if (trend->files_of_peaks != 0)
    hp_note("%zu %s of the peak left out: the highest moment so far, again and again, is no series", trend->files_of_peaks,
            trend->files_of_peaks == 1 ? "file" : "files");
}

void hp_trend_note_processes(const struct hp_trend *trend) {
  if (trend->files_of_others != 0)
    hp_note(
        "the profiles are of %zu processes (or were reset between); shown is the one with the most, from %s on; %zu %s of "
        "others left out (--all-processes: one series of all)",
        trend->process_count, trend->dumps[0].path, trend->files_of_others, trend->files_of_others == 1 ? "file" : "files");
  else if (trend->process_count > 1)
    hp_note(
        "the profiles are of %zu processes (or were reset between): what grows from one to the next is no leak; give those "
        "of one",
        trend->process_count);
}

static void print_left_out(FILE *out, const struct hp_trend *trend) {
  if (trend->left_out == NULL) return;
  char before[HP_UNITS_MAX], then[HP_UNITS_MAX];
  fputs("Left out: ", out);
  hp_text_print(out, trend->left_out->path);
  fprintf(out, " (in use %s after %s: " LEFT_OUT_WHY ")\n", hp_units_format_real(trend->left_out->total, "bytes", then),
          hp_units_format_real(trend->dumps[trend->dump_count - 1].total, "bytes", before));
}

static void print_head(FILE *out, const struct hp_trend *trend) {
  char from[HP_UNITS_MAX], span[HP_UNITS_MAX];
  const struct hp_trend_dump *first = &trend->dumps[0], *last = &trend->dumps[trend->dump_count - 1];
  if (trend->program[0] != '\0') {
    fputs("Program:  ", out);
    hp_text_print(out, trend->program);
    fputc('\n', out);
  }
  fprintf(out, "Dumps:    %zu, from %s over %s\n", trend->dump_count, hp_units_format_time(first->time_nanos, from),
          hp_units_format_duration(last->time_nanos - first->time_nanos, span));
  print_left_out(out, trend);
  fprintf(out, "Stacks:   %zu, of which %zu have enough samples to be tested\n", trend->row_count, trend->tested);
  size_t suspects = suspect_count(trend);
  if (suspects == 0)
    fputs("Suspects: none (growth at 99.9 % confidence, all stacks together, that still goes on)\n\n", out);
  else
    fprintf(out, "Suspects: %zu (growth at 99.9 %% confidence, all stacks together, that still goes on)\n\n", suspects);
}

static const char *verdict(const struct hp_trend_row *row) {
  if (row->fit.is_suspect) return "LEAK?";
  if (row->fit.levels_off) return "levels off";
  if (!row->fit.is_tested) return "few samples";
  if (row->fit.is_monotone) return "rises";
  return "no trend";
}

static void print_frame(FILE *out, const struct hp_view_frames *frames, uint32_t index, size_t terminal_width) {
  const struct hp_view_frame *frame = &frames->frames[index];
  const char *file = frames->by_line ? hp_view_text(frames, frame->file) : "";
  size_t place = file[0] != '\0' ? strlen(file) + (size_t)snprintf(NULL, 0, " :%" PRId64, frame->line) : 0;
  hp_name_print(out, hp_view_text(frames, frame->name), hp_name_room(terminal_width, INDENT + place));
  if (file[0] == '\0') return;
  fputc(' ', out);
  hp_text_print(out, file);
  if (frame->line != 0) fprintf(out, ":%" PRId64, frame->line);
}

static void print_figures(FILE *out, const struct hp_trend *trend, const struct hp_trend_row *row, size_t rank) {
  char slope[HP_UNITS_MAX], error[HP_UNITS_MAX], first[HP_UNITS_MAX], last[HP_UNITS_MAX];
  fprintf(out, "%3zu. %-11s  %s%s/h +-%s   %s -> %s   p %.2g", rank, verdict(row), row->fit.slope > 0 ? "+" : "",
          hp_units_format_real(row->fit.slope, "bytes", slope), hp_units_format_real(row->fit.slope_error, "bytes", error),
          hp_units_format_real(hp_trend_bytes(trend, row, 0), "bytes", first),
          hp_units_format_real(hp_trend_bytes(trend, row, trend->dump_count - 1), "bytes", last), row->fit.p_adjusted);
  if (row->age[0] != '\0') {
    fputs("   oldest block ", out);
    hp_text_print(out, row->age);
  }
  fputc('\n', out);
}

static void print_row(FILE *out, const struct hp_trend *trend, const struct hp_view_frames *frames,
                      const struct hp_trend_row *row, size_t rank, const struct hp_trend_look *look) {
  print_figures(out, trend, row, rank);
  uint32_t shown = look->whole_stacks || row->frame_count <= FRAMES_SHOWN + 1 ? row->frame_count : FRAMES_SHOWN;
  for (uint32_t i = 0; i < shown; i++) {
    fputs(i == 0 ? "       " : "     < ", out);
    print_frame(out, frames, trend->frame_list[row->first_frame + i], look->terminal_width);
    fputc('\n', out);
  }
  if (shown < row->frame_count) fprintf(out, "     < %u more (--stacks)\n", (unsigned)(row->frame_count - shown));
}

/* Stacks that grew from the first dump to the last, with too few samples to have an opinion. */
static size_t count_unsure(const struct hp_trend *trend) {
  size_t count = 0;
  for (size_t i = 0; i < trend->row_count; i++) {
    const struct hp_trend_row *row = &trend->rows[i];
    count += !row->fit.is_tested && row->fit.slope > 0 &&
             hp_trend_bytes(trend, row, trend->dump_count - 1) > hp_trend_bytes(trend, row, 0);
  }
  return count;
}

static void print_unsure(FILE *out, const struct hp_trend *trend) {
  size_t count = suspect_count(trend) == 0 ? count_unsure(trend) : 0;
  if (count == 0) return;
  int64_t period = trend->dumps[trend->dump_count - 1].period;
  const char *remedy = period > 64 * 1024 ? " or set HEAPPROF_SAMPLE_RATE=64k"
                       : period > 1       ? " or lower HEAPPROF_SAMPLE_RATE"
                                          : "";
  fprintf(out, "%zu %s too few samples to tell: run longer%s\n", count,
          count == 1 ? "stack grows but has" : "stacks grow but have", remedy);
}

void hp_trend_print(FILE *out, const struct hp_trend *trend, const struct hp_view_frames *frames,
                    const struct hp_trend_look *look) {
  print_head(out, trend);
  size_t suspects = suspect_count(trend), shown = look->shown;
  if (shown == 0 || shown > trend->row_count) shown = trend->row_count;
  if (shown < suspects) shown = suspects;
  for (size_t i = 0; i < shown; i++) print_row(out, trend, frames, &trend->rows[i], i + 1, look);
  if (shown < trend->row_count) fprintf(out, "%zu more stacks (-n 0: all)\n", trend->row_count - shown);
  print_unsure(out, trend);
}

static void print_json_stack(struct hp_json *json, const struct hp_trend *trend, const struct hp_view_frames *frames,
                             const struct hp_trend_row *row) {
  hp_json_array(json, "stack");
  for (uint32_t i = 0; i < row->frame_count; i++) {
    const struct hp_view_frame *frame = &frames->frames[trend->frame_list[row->first_frame + i]];
    hp_json_object(json, NULL);
    hp_json_string(json, "function", hp_view_text(frames, frame->name));
    hp_json_string(json, "module", hp_view_text(frames, frame->module));
    hp_json_string(json, "file", hp_view_text(frames, frame->file));
    hp_json_integer(json, "line", frame->line);
    hp_json_end(json, '}');
  }
  hp_json_end(json, ']');
}

static void print_json_row(struct hp_json *json, const struct hp_trend *trend, const struct hp_view_frames *frames,
                           const struct hp_trend_row *row, size_t rank) {
  hp_json_object(json, NULL);
  hp_json_integer(json, "rank", (int64_t)rank);
  hp_json_bool(json, "suspect", row->fit.is_suspect);
  hp_json_bool(json, "tested", row->fit.is_tested);
  hp_json_bool(json, "monotone", row->fit.is_monotone);
  hp_json_bool(json, "levels_off", row->fit.levels_off);
  hp_json_real(json, "slope_bytes_per_hour", row->fit.slope);
  hp_json_real(json, "slope_error_bytes_per_hour", row->fit.slope_error);
  hp_json_real(json, "p_value", row->fit.p_value);
  hp_json_real(json, "p_adjusted", row->fit.p_adjusted);
  hp_json_integer(json, "window_start", (int64_t)row->fit.window_start);
  hp_json_real(json, "last_share", row->fit.last_share);
  if (row->age[0] != '\0')
    hp_json_string(json, "oldest_age", row->age);
  else
    hp_json_null(json, "oldest_age");
  hp_json_array(json, "bytes");
  for (size_t d = 0; d < trend->dump_count; d++) hp_json_integer(json, NULL, hp_trend_whole_bytes(trend, row, d));
  hp_json_end(json, ']');
  hp_json_array(json, "errors_bytes");
  for (size_t d = 0; d < trend->dump_count; d++) hp_json_real(json, NULL, hp_trend_error(trend, row, d));
  hp_json_end(json, ']');
  print_json_stack(json, trend, frames, row);
  hp_json_end(json, '}');
}

static void print_json_dump(struct hp_json *json, const char *key, const struct hp_trend_dump *dump) {
  hp_json_object(json, key);
  hp_json_string(json, "file", dump->path);
  hp_json_integer(json, "time_nanos", dump->time_nanos);
  hp_json_integer(json, "period", dump->period);
  hp_json_end(json, '}');
}

void hp_trend_print_json(FILE *out, const struct hp_trend *trend, const struct hp_view_frames *frames, size_t shown) {
  struct hp_json json;
  if (shown == 0 || shown > trend->row_count) shown = trend->row_count;
  hp_json_begin(&json, out, true);
  hp_json_object(&json, NULL);
  hp_json_string(&json, "command", "trend");
  hp_json_string(&json, "program", trend->program);
  hp_json_real(&json, "confidence", 1 - HP_TREND_FALSE_ALARM);
  hp_json_integer(&json, "processes", (int64_t)trend->process_count);
  hp_json_integer(&json, "files_of_others", (int64_t)trend->files_of_others);
  hp_json_integer(&json, "files_of_peaks", (int64_t)trend->files_of_peaks);
  hp_json_integer(&json, "stacks", (int64_t)trend->row_count);
  hp_json_integer(&json, "tested", (int64_t)trend->tested);
  hp_json_integer(&json, "suspects", (int64_t)suspect_count(trend));
  hp_json_array(&json, "dumps");
  for (size_t d = 0; d < trend->dump_count; d++) print_json_dump(&json, NULL, &trend->dumps[d]);
  hp_json_end(&json, ']');
  if (trend->left_out != NULL)
    print_json_dump(&json, "left_out", trend->left_out);
  else
    hp_json_null(&json, "left_out");
  hp_json_array(&json, "rows");
  for (size_t i = 0; i < shown; i++) print_json_row(&json, trend, frames, &trend->rows[i], i + 1);
  hp_json_end(&json, ']');
  hp_json_end(&json, '}');
}
