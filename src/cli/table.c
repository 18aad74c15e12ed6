/* SPDX-License-Identifier: MIT
 * table.c - see table.h.
 */
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "name_shorten.h"
#include "profile_header.h"
#include "text_output.h"
#include "units.h"

/* Rows without any value at all (ignored, or of another column) say nothing. */
static size_t rows_shown(const struct hp_table *table) {
  size_t count = table->report->nonzero_count, most = table->row_count_max;
  return most != 0 && most < count ? most : count;
}

/* What 100 % is: all of the profile; of a difference, the old side. */
static double whole(const struct hp_table *table) {
  int64_t total = table->is_diff ? table->old_total : table->report->total;
  return fabs((double)total);
}

static double percent(const struct hp_table *table, int64_t value) {
  double all = whole(table);
  return all > 0 ? 100 * (double)value / all : 0;
}

/* What is there is told from nothing; what the sum of percentages leaves of nothing is not. */
static const char *format_percent(double value, char out[HP_UNITS_MAX]) {
  if (fabs(value) < 1e-9)
    snprintf(out, HP_UNITS_MAX, "0.00%%");
  else if (fabs(value) < 0.005)
    snprintf(out, HP_UNITS_MAX, value > 0 ? "<0.01%%" : "-0.00%%");
  else if (fabs(value) >= 99999.5)
    snprintf(out, HP_UNITS_MAX, "%.3g%%", value);
  else
    snprintf(out, HP_UNITS_MAX, "%.*f%%", fabs(value) >= 99.995 ? 0 : fabs(value) >= 9.995 ? 1 : 2, value);
  return out;
}

/* "+-3.1MiB", or nothing where the figure is exact or there is no telling. */
static const char *format_error(const struct hp_table *table, double error, char out[HP_UNITS_MAX]) {
  char text[HP_UNITS_MAX];
  if (!table->report->has_error || error < 0.5)
    out[0] = '\0';
  else
    snprintf(out, HP_UNITS_MAX, "+-%.40s", hp_units_format_real(error, table->report->unit, text));
  return out;
}

/* A name and its line after `used` columns of text. A place is of use only whole: the name gets what it leaves. */
static void print_name(FILE *out, const struct hp_table *table, const struct hp_report_row *row, size_t used) {
  size_t place = row->file[0] != '\0' ? strlen(row->file) + (size_t)snprintf(NULL, 0, " :%" PRId64, row->line) : 0;
  hp_name_print(out, row->function, hp_name_room(table->terminal_width, used + place));
  if (row->file[0] == '\0') return;
  fputc(' ', out);
  hp_text_print(out, row->file);
  if (row->line != 0) fprintf(out, ":%" PRId64, row->line);
}

static void print_numbers(FILE *out, const struct hp_table *table, const struct hp_report_row *row, double sum) {
  char a[HP_UNITS_MAX], b[HP_UNITS_MAX], c[HP_UNITS_MAX], d[HP_UNITS_MAX], e[HP_UNITS_MAX], f[HP_UNITS_MAX], g[HP_UNITS_MAX];
  const char *unit = table->report->unit;
  fprintf(out, "%9s %9s %6s %6s %9s %9s %6s", hp_units_format(row->flat, unit, a), format_error(table, row->flat_error, b),
          format_percent(percent(table, row->flat), c), format_percent(sum, d), hp_units_format(row->cum, unit, e),
          format_error(table, row->cum_error, f), format_percent(percent(table, row->cum), g));
}

enum { NUMBERS_WIDTH = 9 + 1 + 9 + 1 + 6 + 1 + 6 + 1 + 9 + 1 + 9 + 1 + 6 };

/* A caller above its row or a callee below it. */
static void print_edge(FILE *out, const struct hp_table *table, uint32_t other, int64_t value) {
  char a[HP_UNITS_MAX], b[HP_UNITS_MAX];
  fprintf(out, "%*s %9s %6s | ", NUMBERS_WIDTH - 19, "", hp_units_format(value, table->report->unit, a),
          format_percent(percent(table, value), b));
  print_name(out, table, &table->report->rows[other], NUMBERS_WIDTH + 1);
  fputc('\n', out);
}

static void print_callers(FILE *out, const struct hp_table *table, uint32_t row) {
  size_t count;
  const uint32_t *edges = hp_report_callers(table->report, row, &count);
  for (size_t i = 0; i < count; i++)
    print_edge(out, table, table->report->edges[edges[i]].caller, table->report->edges[edges[i]].value);
}

static void print_callees(FILE *out, const struct hp_table *table, uint32_t row) {
  size_t count;
  const struct hp_report_edge *edges = hp_report_callees(table->report, row, &count);
  for (size_t i = 0; i < count; i++) print_edge(out, table, edges[i].callee, edges[i].value);
}

/* The rows alone, with their column titles. */
static void print_rows(FILE *out, const struct hp_table *table) {
  size_t count = rows_shown(table);
  double sum = 0;
  fprintf(out, "%9s %9s %6s %6s %9s %9s %6s  %s\n", "flat", "", "flat%", "sum%", "cum", "", "cum%",
          table->by_line ? "function file:line" : "function");
  for (size_t i = 0; i < count; i++) {
    const struct hp_report_row *row = &table->report->rows[i];
    sum += percent(table, row->flat);
    if (table->tree) {
      if (i != 0) fputs("--------\n", out);
      print_callers(out, table, (uint32_t)i);
    }
    print_numbers(out, table, row, sum);
    fputs("  ", out);
    print_name(out, table, row, NUMBERS_WIDTH + 2);
    fputc('\n', out);
    if (table->tree) print_callees(out, table, (uint32_t)i);
  }
}

static void print_type(FILE *out, const struct hp_table *table) {
  const struct hp_report *report = table->report;
  char a[HP_UNITS_MAX], b[HP_UNITS_MAX], c[HP_UNITS_MAX], d[HP_UNITS_MAX];
  const char *error = format_error(table, report->total_error, b), *space = error[0] != '\0' ? " " : "";
  fputs("Type:     ", out);
  hp_text_print(out, report->type_name);
  if (table->is_diff) {
    fprintf(out, ", growth %s%s%s (%s to %s)\n", hp_units_format(report->shown_total, report->unit, a), space, error,
            hp_units_format(table->old_total, report->unit, c), hp_units_format(table->new_total, report->unit, d));
    return;
  }
  fprintf(out, ", %s%s%s", hp_units_format(report->shown_total, report->unit, a), space, error);
  if (strcmp(a, hp_units_format(report->total, report->unit, c)) != 0) fprintf(out, " of %s", c);
  fputc('\n', out);
}

void hp_table_print(FILE *out, const struct hp_table *table) {
  hp_profile_header_print(out, table->profile);
  print_type(out, table);
  size_t count = rows_shown(table), all = table->report->nonzero_count;
  if (count < all) fprintf(out, "Showing %zu of %zu %s (-n 0: all)\n", count, all, table->by_line ? "lines" : "functions");
  print_rows(out, table);
}

static void json_edge(struct hp_json *json, const struct hp_table *table, uint32_t other, int64_t value) {
  const struct hp_report_row *row = &table->report->rows[other];
  hp_json_object(json, NULL);
  hp_json_string(json, "function", row->function);
  if (table->by_line) {
    hp_json_string(json, "file", row->file);
    hp_json_integer(json, "line", row->line);
  }
  hp_json_integer(json, "value", value);
  hp_json_end(json, '}');
}

static void json_tree(struct hp_json *json, const struct hp_table *table, uint32_t row) {
  const struct hp_report *report = table->report;
  size_t count;
  const uint32_t *callers = hp_report_callers(report, row, &count);
  hp_json_array(json, "callers");
  for (size_t i = 0; i < count; i++)
    json_edge(json, table, report->edges[callers[i]].caller, report->edges[callers[i]].value);
  hp_json_end(json, ']');
  const struct hp_report_edge *callees = hp_report_callees(report, row, &count);
  hp_json_array(json, "callees");
  for (size_t i = 0; i < count; i++) json_edge(json, table, callees[i].callee, callees[i].value);
  hp_json_end(json, ']');
}

static void json_error(struct hp_json *json, const struct hp_table *table, const char *key, double error) {
  if (table->report->has_error)
    hp_json_real(json, key, error);
  else
    hp_json_null(json, key);
}

static void json_row(struct hp_json *json, const struct hp_table *table, uint32_t index, double sum) {
  const struct hp_report_row *row = &table->report->rows[index];
  hp_json_object(json, NULL);
  hp_json_string(json, "function", row->function);
  if (table->by_line) {
    hp_json_string(json, "file", row->file);
    hp_json_integer(json, "line", row->line);
  }
  hp_json_integer(json, "flat", row->flat);
  json_error(json, table, "flat_error", row->flat_error);
  hp_json_real(json, "flat_percent", percent(table, row->flat));
  hp_json_real(json, "sum_percent", sum);
  hp_json_integer(json, "cum", row->cum);
  json_error(json, table, "cum_error", row->cum_error);
  hp_json_real(json, "cum_percent", percent(table, row->cum));
  if (table->tree) json_tree(json, table, index);
  hp_json_end(json, '}');
}

void hp_table_json(FILE *out, const char *command, const struct hp_table *table) {
  const struct hp_report *report = table->report;
  struct hp_json json;
  hp_json_begin(&json, out, true);
  hp_json_object(&json, NULL);
  hp_json_string(&json, "command", command);
  hp_json_integer(&json, "format", 1);
  hp_profile_header_json(&json, table->profile);
  hp_json_string(&json, "type", report->type_name);
  hp_json_string(&json, "unit", report->unit);
  hp_json_integer(&json, "total", report->total);
  hp_json_integer(&json, "shown_total", report->shown_total);
  json_error(&json, table, "shown_total_error", report->total_error);
  if (table->is_diff) {
    hp_json_string(&json, "old", table->old_name);
    hp_json_string(&json, "new", table->new_name);
    hp_json_integer(&json, "old_total", table->old_total);
    hp_json_integer(&json, "new_total", table->new_total);
  }
  hp_json_array(&json, "rows");
  size_t count = rows_shown(table);
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    sum += percent(table, report->rows[i].flat);
    json_row(&json, table, (uint32_t)i, sum);
  }
  hp_json_end(&json, ']');
  hp_json_end(&json, '}');
}
