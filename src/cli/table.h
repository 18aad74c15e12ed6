/* SPDX-License-Identifier: MIT
 * table.h - a report as text and as JSON (docs/json.md): what top, diff and run print.
 */
#ifndef HP_TABLE_H
#define HP_TABLE_H

#include <stdio.h>

#include "report.h"

struct hp_table {
  const struct hp_profile *profile;
  const struct hp_report *report;
  size_t row_count_max; /* 0: all */
  bool by_line;
  bool tree;
  size_t terminal_width; /* names are shortened to it (name_shorten.h); 0: never */
  bool is_diff;          /* percentages of old_total; rows are growth */
  const char *old_name;  /* is_diff: what was compared */
  const char *new_name;
  int64_t old_total; /* is_diff: both sides, in the reported column */
  int64_t new_total;
};

/* Header and rows as text. */
void hp_table_print(FILE *out, const struct hp_table *table);

/* One JSON object and a newline. */
void hp_table_json(FILE *out, const char *command, const struct hp_table *table);

#endif
