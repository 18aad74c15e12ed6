/* SPDX-License-Identifier: MIT
 * profile_header.c - see profile_header.h.
 */
#include "profile_header.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"
#include "view_reconcile.h"

enum { COMMENTS_SHOWN_MAX = 64 };

static void print_program(FILE *out, const struct hp_profile *profile) {
  if (profile->mapping_count == 0) return;
  const char *file = hp_profile_text(profile, profile->mappings[0].file);
  const char *build_id = hp_profile_text(profile, profile->mappings[0].build_id);
  if (file[0] == '\0' && build_id[0] == '\0') return;
  fputs("Program:  ", out);
  hp_text_print(out, file);
  if (build_id[0] != '\0') {
    fputs("  build id ", out);
    hp_text_print(out, build_id);
  }
  fputc('\n', out);
}

/* The whole number behind `key` ("samples=") in a comment "heapprof.WORD key=value ...", or -1. */
static int64_t comment_number(const char *comment, const char *key) {
  size_t length = strlen(key);
  for (const char *at = comment; (at = strchr(at, ' ')) != NULL;) {
    at++;
    if (strncmp(at, key, length) == 0 && at[length] >= '0' && at[length] <= '9') return strtoll(at + length, NULL, 10);
  }
  return -1;
}

/* The library's comment "heapprof.WORD ...", or null. */
static const char *library_comment(const struct hp_profile *profile, const char *word) {
  size_t length = strlen(word);
  for (size_t i = 0; i < profile->comment_count; i++) {
    const char *comment = hp_profile_text(profile, profile->comments[i]);
    if (strncmp(comment, word, length) == 0 && (comment[length] == ' ' || comment[length] == '\0')) return comment;
  }
  return NULL;
}

/* "one each 512KiB on average", or what else the period counts, and how many samples that made. */
static void print_rate(FILE *out, const struct hp_profile *profile) {
  char text[HP_UNITS_MAX];
  const char *type = hp_profile_text(profile, profile->period_type.type);
  const char *unit = hp_profile_text(profile, profile->period_type.unit);
  bool is_bytes = strcmp(unit, "bytes") == 0;
  if (profile->period == 1 && is_bytes)
    fputs("Sampled:  every allocation", out);
  else
    fprintf(out, "Sampled:  one each %s", hp_units_format(profile->period, unit, text));
  if (!is_bytes) {
    fputc(' ', out);
    hp_text_print(out, type[0] != '\0' ? type : unit);
  }
  const char *sampling = library_comment(profile, "heapprof.sampling");
  if (sampling != NULL && comment_number(sampling, "samples=") >= 0)
    fprintf(out, "; %" PRId64 " samples", comment_number(sampling, "samples="));
  if (sampling != NULL && comment_number(sampling, "live_samples=") >= 0)
    fprintf(out, ", %" PRId64 " of them live", comment_number(sampling, "live_samples="));
  fputc('\n', out);
}

static void print_lost(FILE *out, const struct hp_profile *profile) {
  const char *lost = library_comment(profile, "heapprof.lost");
  if (lost == NULL) return;
  fputs("Lost:    ", out);
  hp_text_print(out, lost + strlen("heapprof.lost"));
  fputc('\n', out);
}

/* Appends "WHAT 12MiB" if the figure is known. */
static void print_figure(FILE *out, const char *before, int64_t bytes, const char *after) {
  char text[HP_UNITS_MAX];
  if (bytes >= 0) fprintf(out, "%s%s%s", before, hp_units_format(bytes, "bytes", text), after);
}

/* The allocator cannot be asked in a signal handler: then its figures are from before, and need not fit the rest. */
static void print_age(FILE *out, int64_t seconds) {
  char text[HP_UNITS_MAX];
  if (seconds <= 0) return;
  if (seconds > INT64_MAX / 1000000000) seconds = INT64_MAX / 1000000000;
  fprintf(out, " (as of %s before)", hp_units_format_duration(seconds * 1000000000, text));
}

/* Live blocks against what the allocator and the kernel count: why the profile's sum is not the resident set. */
static void print_memory(FILE *out, const struct hp_profile *profile) {
  struct hp_reconcile figures;
  hp_view_reconcile_read(profile, &figures);
  if (!figures.has_any) return;
  const int64_t *bytes = figures.bytes;
  print_figure(out, "Memory:   live blocks ", bytes[HP_RECONCILE_INUSE], "");
  if (bytes[HP_RECONCILE_INUSE_ERROR] > 0) print_figure(out, " +-", bytes[HP_RECONCILE_INUSE_ERROR], "");
  if (bytes[HP_RECONCILE_ALLOCATOR_INUSE] >= 0) {
    fputs("; ", out);
    hp_text_print(out, figures.allocator[0] != '\0' ? figures.allocator : "the allocator");
    print_figure(out, " counts ", bytes[HP_RECONCILE_ALLOCATOR_INUSE], " in use");
    print_figure(out, ", ", bytes[HP_RECONCILE_ALLOCATOR_FREE], " free");
    print_age(out, bytes[HP_RECONCILE_ALLOCATOR_AGE]);
  }
  print_figure(out, "\n          resident ", bytes[HP_RECONCILE_RSS_ANON], " anonymous");
  print_figure(out, ", ", bytes[HP_RECONCILE_RSS_FILE], " of files");
  print_figure(out, "; the profiler's own ", bytes[HP_RECONCILE_PROFILER], "");
  fputc('\n', out);
}

/* The library's comments that the lines above have said already. */
static bool is_said(const char *comment) {
  static const char *const words[] = {"heapprof.version", "heapprof.sampling", "heapprof.totals", "heapprof.reconcile",
                                      "heapprof.lost"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t length = strlen(words[i]);
    if (strncmp(comment, words[i], length) == 0 && (comment[length] == ' ' || comment[length] == '\0')) return true;
  }
  return false;
}

static void print_comments(FILE *out, const struct hp_profile *profile) {
  size_t shown = 0, left = 0;
  for (size_t i = 0; i < profile->comment_count; i++) {
    const char *comment = hp_profile_text(profile, profile->comments[i]);
    if (is_said(comment)) continue;
    if (shown++ >= COMMENTS_SHOWN_MAX) {
      left++;
      continue;
    }
    fputs("Comment:  ", out);
    hp_text_print(out, comment);
    fputc('\n', out);
  }
  if (left != 0) fprintf(out, "Comment:  ... and %zu more\n", left);
}

void hp_profile_header_print(FILE *out, const struct hp_profile *profile) {
  char text[HP_UNITS_MAX];
  print_program(out, profile);
  if (profile->time_nanos > 0 || profile->duration_nanos > 0) {
    fprintf(out, "Time:     %s", hp_units_format_time(profile->time_nanos, text));
    if (profile->duration_nanos > 0) fprintf(out, ", covers %s", hp_units_format_duration(profile->duration_nanos, text));
    fputc('\n', out);
  }
  if (profile->period > 0) print_rate(out, profile);
  print_lost(out, profile);
  print_memory(out, profile);
  print_comments(out, profile);
}

void hp_profile_header_json(struct hp_json *json, const struct hp_profile *profile) {
  bool has_program = profile->mapping_count != 0;
  hp_json_string(json, "program", has_program ? hp_profile_text(profile, profile->mappings[0].file) : "");
  hp_json_string(json, "build_id", has_program ? hp_profile_text(profile, profile->mappings[0].build_id) : "");
  hp_json_integer(json, "time_nanos", profile->time_nanos);
  hp_json_integer(json, "duration_nanos", profile->duration_nanos);
  hp_json_integer(json, "period", profile->period);
  hp_json_string(json, "period_unit", hp_profile_text(profile, profile->period_type.unit));
  hp_json_array(json, "sample_types");
  for (size_t i = 0; i < profile->type_count; i++) {
    hp_json_object(json, NULL);
    hp_json_string(json, "type", hp_profile_text(profile, profile->types[i].type));
    hp_json_string(json, "unit", hp_profile_text(profile, profile->types[i].unit));
    hp_json_end(json, '}');
  }
  hp_json_end(json, ']');
  hp_json_array(json, "comments");
  for (size_t i = 0; i < profile->comment_count; i++)
    hp_json_string(json, NULL, hp_profile_text(profile, profile->comments[i]));
  hp_json_end(json, ']');
}
