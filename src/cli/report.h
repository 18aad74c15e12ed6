/* SPDX-License-Identifier: MIT
 * report.h - a profile summed up by function or by line: what top, diff and the HTML page show.
 *
 * flat  what the frame itself allocated (it is the leaf); cum  what it or anything it called did, each sample counted once
 * however often the frame recurs. The total is taken before focus and ignore, as pprof does, so percentages keep their meaning.
 */
#ifndef HP_REPORT_H
#define HP_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli_error.h"
#include "profile_model.h"

struct hp_report_options {
  const char *type;   /* sample type; null: the profile's default */
  const char *focus;  /* POSIX ERE: only stacks with a frame (function, file or mapping name) that matches; null: all */
  const char *ignore; /* POSIX ERE: none of the stacks with such a frame; null: none left out */
  bool by_line;       /* a row for each function, file and line; else for each function name */
  bool edges;         /* also count caller -> callee pairs */
  size_t first_rows;  /* 0: all rows; else only so many of the first, no edges, no line_rows, no location_rows */
};

struct hp_report_row {
  const char *function; /* of the profile, or owned by the report for frames without a name:
                         * "[libfoo.so]", by_line "0x1234 libfoo.so+0x34" */
  const char *file;     /* "" unless by_line */
  int64_t line;         /* 0 unless by_line */
  int64_t flat;
  int64_t cum;
  double flat_error; /* standard errors, 0: exact */
  double cum_error;
};

struct hp_report_edge {
  uint32_t caller; /* indices of rows */
  uint32_t callee;
  int64_t value;
};

struct hp_report {
  uint32_t type; /* the column reported */
  const char *type_name;
  const char *unit;
  int64_t total;              /* sum of all samples' absolute values, before focus and ignore */
  double total_error;         /* of shown_total */
  bool has_error;             /* false: the columns do not say (no period in bytes, no partner column) */
  int64_t shown_total;        /* after them */
  struct hp_report_row *rows; /* by |flat| falling, then |cum| falling, then name */
  size_t row_count;
  size_t nonzero_count;         /* rows, with those left out, that have any figure but 0 */
  struct hp_report_edge *edges; /* by caller; empty unless asked for */
  size_t edge_count;
  uint32_t *edges_by_callee; /* the same, as indices */
  uint32_t *line_rows;       /* profile->lines[i] -> its row; a location without lines: location_rows */
  uint32_t *location_rows;
  struct hp_report_rows *names; /* private: owns the rows' texts */
};

/* Sums the profile up; it must outlive the report. Returns 0, or -1 and one sentence (no such type, bad expression). */
int hp_report_build(const struct hp_profile *profile, const struct hp_report_options *options, struct hp_report *out,
                    struct hp_error *error);

/* The edges from a row to what it calls, and (as indices into edges) from its callers to it; largest first, *count of them. */
const struct hp_report_edge *hp_report_callees(const struct hp_report *report, uint32_t row, size_t *count);
const uint32_t *hp_report_callers(const struct hp_report *report, uint32_t row, size_t *count);

/* The function of a row by which a frame of another profile is the same one: without the address, if it is code without a name that
 * begins with one. Points into it. */
const char *hp_report_portable_name(const char *function);

/* Frees what the report owns, not the struct. */
void hp_report_free(struct hp_report *report);

#endif
