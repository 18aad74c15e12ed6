/* SPDX-License-Identifier: MIT
 * fuzz_profile_reader.c - libFuzzer: any bytes into the profile reader, and what it lets through into everything behind it.
 *
 * What must hold for a profile that was read: writing it and reading that again gives the same shape; report (by function and by
 * line, with edges), drop_frames, difference with itself, demangling and JSON survive it. ASan and UBSan watch.
 *   clang -fsanitize=fuzzer,address,undefined ...; run with seeds/profile_reader as the corpus.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame_filter.h"
#include "merge.h"
#include "profile_header.h"
#include "profile_reader.h"
#include "profile_writer.h"
#include "report.h"
#include "symbolize.h"
#include "table.h"

enum { READ_LIMIT_BYTES = 8 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
  if (!condition) abort();
}

static void write_and_read_back(const struct hp_profile *profile) {
  struct hp_error error;
  struct hp_profile *again;
  void *bytes;
  size_t length;
  require(hp_profile_write_memory(profile, &bytes, &length, &error) == 0);
  /* A model near the limit may be over it by a string when read again. */
  hp_profile_read_limit_set(4 * (uint64_t)READ_LIMIT_BYTES);
  require(hp_profile_read_memory("again", bytes, length, &again, &error) == 0);
  require(again->sample_count == profile->sample_count && again->location_count == profile->location_count &&
          again->string_count == profile->string_count && again->line_count == profile->line_count);
  hp_profile_free(again);
  free(bytes);
}

/* The first rows alone, which are summed in another way, are those of the whole. */
static void check_first_rows(const struct hp_profile *profile, const struct hp_report *whole,
                             struct hp_report_options options) {
  struct hp_report first;
  struct hp_error error;
  options.edges = false;
  options.first_rows = 3;
  require(hp_report_build(profile, &options, &first, &error) == 0);
  require(first.nonzero_count == whole->nonzero_count && first.total == whole->total);
  require(first.row_count == (whole->nonzero_count < 3 ? whole->nonzero_count : 3));
  for (size_t i = 0; i < first.row_count; i++) {
    const struct hp_report_row *x = &first.rows[i], *y = &whole->rows[i];
    require(strcmp(x->function, y->function) == 0 && strcmp(x->file, y->file) == 0 && x->line == y->line);
    require(x->flat == y->flat && x->cum == y->cum);
  }
  hp_report_free(&first);
}

static void report(const struct hp_profile *profile, FILE *out, int by_line) {
  struct hp_report report;
  struct hp_error error;
  struct hp_report_options options = {.by_line = by_line != 0, .edges = true, .focus = by_line != 0 ? "a|b" : NULL};
  if (hp_report_build(profile, &options, &report, &error) != 0) return;
  struct hp_table table = {
      .profile = profile, .report = &report, .row_count_max = 50, .by_line = by_line != 0, .tree = true};
  hp_table_print(out, &table);
  hp_table_json(out, "top", &table);
  check_first_rows(profile, &report, options);
  hp_report_free(&report);
}

static void subtract_from_itself(const struct hp_profile *profile) {
  struct hp_error error;
  struct hp_merge *merge = hp_merge_new();
  require(hp_merge_add(merge, profile, "a", 1, &error) == 0);
  require(hp_merge_add(merge, profile, "b", 1, &error) == 0);
  require(hp_merge_add(merge, profile, "c", -1, &error) == 0);
  hp_profile_free(hp_merge_finish(merge));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static FILE *nowhere;
  struct hp_profile *profile;
  struct hp_error error;
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  hp_profile_read_limit_set(READ_LIMIT_BYTES);
  hp_profile_read_ahead_set(size % 4 == 0 ? 1 : UINT64_MAX);
  if (hp_profile_read_memory("input", data, size, &profile, &error) != 0) return 0;
  write_and_read_back(profile);
  hp_symbolize_demangle(profile);
  subtract_from_itself(profile);
  hp_profile_header_print(nowhere, profile);
  report(profile, nowhere, 0);
  hp_profile_drop_frames(profile);
  report(profile, nowhere, 1);
  hp_profile_free(profile);
  return 0;
}
