/* SPDX-License-Identifier: MIT
 * trend_print.h - a trend as text for people and as JSON (docs/json-trend.md).
 */
#ifndef HP_TREND_PRINT_H
#define HP_TREND_PRINT_H

#include <stdio.h>

#include "trend_series.h"

struct hp_trend_look {
  size_t shown;          /* rows at most, 0: all */
  bool whole_stacks;     /* every frame, else the first few and how many more */
  size_t terminal_width; /* names are shortened to it (name_shorten.h); 0: never */
};

void hp_trend_print(FILE *out, const struct hp_trend *trend, const struct hp_view_frames *frames,
                    const struct hp_trend_look *look);

/* A line on stderr when files of the peak were left out. */
void hp_trend_note_peaks(const struct hp_trend *trend);

/* A line on stderr when the files are of several processes, and what was made of that. */
void hp_trend_note_processes(const struct hp_trend *trend);

/* What view, which has no such line, says on stderr when the last profile was left out. */
void hp_trend_note_left_out(const struct hp_trend *trend);
void hp_trend_print_json(FILE *out, const struct hp_trend *trend, const struct hp_view_frames *frames, size_t shown);

#endif
