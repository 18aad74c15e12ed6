/* SPDX-License-Identifier: MIT
 * trend_series.h - the memory in use of each stack over a series of dumps, with the fit of its growth.
 *
 * A stack is known by its places in the binaries (build id or path, and offset), not by addresses: dumps may be of different
 * runs.
 * Ownership   hp_trend_free frees all; the frames are the caller's.
 * Memory      one profile at a time, and 32 bytes a stack and dump.
 */
#ifndef HP_TREND_SERIES_H
#define HP_TREND_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli_error.h"
#include "trend_fit.h"
#include "view_frames.h"

#define HP_TREND_DUMPS_MAX 100000

struct hp_trend_dump {
  const char *path; /* as given */
  int64_t time_nanos;
  int64_t period;
  double total;    /* in use in the whole profile, whatever the focus */
  uint32_t origin; /* number of its process; UINT32_MAX: the file does not say (profile_origin.h) */
  size_t filled;   /* stacks known when this dump was read: the columns' length */
  double *bytes;
  double *objects;
  double *variance;   /* of bytes, from sampling */
  double *one_sample; /* the part one more sample would bring */
};

struct hp_trend_row {
  size_t stack;       /* index into the dumps' columns */
  size_t first_frame; /* into frame_list, leaf first */
  uint32_t frame_count;
  struct hp_trend_fit fit;
  int64_t age_nanos;      /* lower bound of the oldest live block's age bucket; -1: not known */
  char age[32];           /* the label itself, "" if there is none */
  int64_t age_time_nanos; /* of the dump it was seen in */
};

struct hp_trend {
  char *program;               /* file name of the program, "" if unknown */
  struct hp_trend_dump *dumps; /* by time */
  size_t dump_count;
  const struct hp_trend_dump
      *left_out;             /* the last profile, taken when memory had collapsed; null: none. Not among the dumps */
  size_t process_count;      /* processes that the files tell apart */
  size_t files_of_others;    /* left out because they are of other processes */
  size_t files_of_peaks;     /* left out because they are no moment of their own */
  struct hp_trend_row *rows; /* in the order of hp_trend_fit_compare */
  size_t row_count;
  size_t tested;
  uint32_t *frame_list;
  size_t frame_count;
};

struct hp_trend_options {
  const char *focus; /* as in report.h */
  const char *ignore;
  const char *debug_dirs;
  bool all_processes; /* files of several are one series; else, if it has enough, that of the one with the most */
};

/* Reads the files and fits every stack. What grows from one process to the next is no leak: of files of several processes only those
 * of one are kept. The last file is left out when it shows a program that has freed its memory, as the dump at the exit does: it would
 * hide every growth before it (the rule: is_collapsed in trend_series.c).
 * So are the files of the peak (".peak.pb.gz"), if there are enough others: the highest moment so far again and again is no series.
 * 0, or -1 and a sentence: fewer than HP_TREND_DUMPS_MIN files, one that cannot be read, has no in-use column or no time. */
int hp_trend_build(char *const *paths, size_t count, const struct hp_trend_options *options, struct hp_view_frames *frames,
                   struct hp_trend *out, struct hp_error *error);
void hp_trend_free(struct hp_trend *trend);

/* One point of a stack: estimate and standard error, bytes. */
double hp_trend_bytes(const struct hp_trend *trend, const struct hp_trend_row *row, size_t dump);
int64_t hp_trend_whole_bytes(const struct hp_trend *trend, const struct hp_trend_row *row,
                             size_t dump); /* the nearest there is */
double hp_trend_error(const struct hp_trend *trend, const struct hp_trend_row *row, size_t dump);

/* "1h-4h", ">=10m", "<1s", "90s" -> nanoseconds of the first number (0 after "<"); -1: no such text. */
int64_t hp_trend_parse_age(const char *label);

#endif
