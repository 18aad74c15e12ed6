/* SPDX-License-Identifier: MIT
 * report_rows.h - which row of a report each line of a profile belongs to: by function name, or by function, file and line.
 *
 * Rows have small numbers, so that summing up is array work only. A number is found once a string (or a line), not once a frame; equal
 * strings under several indices have one row.
 */
#ifndef HP_REPORT_ROWS_H
#define HP_REPORT_ROWS_H

#include "index_table.h"
#include "profile_model.h"
#include "report.h"

struct hp_report_rows {
  size_t count;
  uint32_t *of_line;     /* profile->lines[i] -> its row */
  uint32_t *of_location; /* the row of a location's only frame (it has one line, or none); HP_NONE: it has several */

  /* Private. */
  const struct hp_profile *profile;
  bool by_line;
  const char **texts; /* each once; not by_line a row is the text of its number */
  size_t text_count, text_capacity;
  struct hp_index_table text_table;
  struct hp_row_key {
    uint32_t function, file; /* texts */
    int64_t line;
  } * keys; /* by_line: a row each */
  size_t key_capacity;
  struct hp_index_table key_table;
  char **made; /* texts for frames without a name */
  size_t made_count, made_capacity;
};

/* Finds the rows. The profile must outlive them. */
void hp_report_rows_find(struct hp_report_rows *rows, const struct hp_profile *profile, bool by_line);

/* Function, file and line of a row; the texts live as long as the rows and the profile. */
struct hp_report_row hp_report_rows_name(const struct hp_report_rows *rows, uint32_t row);

void hp_report_rows_free(struct hp_report_rows *rows);

#endif
