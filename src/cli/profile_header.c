/* SPDX-License-Identifier: MIT
 * profile_header.c - see profile_header.h.
 */
#include "profile_header.h"

#include <inttypes.h>
#include <string.h>

#include "units.h"

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

/* "one sample each 512KiB on average", or what else the period counts. */
static void print_rate(FILE *out, const struct hp_profile *profile) {
  char text[HP_UNITS_MAX];
  const char *type = hp_profile_text(profile, profile->period_type.type);
  const char *unit = hp_profile_text(profile, profile->period_type.unit);
  if (profile->period == 1 && strcmp(unit, "bytes") == 0) {
    fputs("Sampled:  every allocation\n", out);
    return;
  }
  fprintf(out, "Sampled:  one each %s", hp_units_format(profile->period, unit, text));
  if (strcmp(unit, "bytes") != 0) {
    fputc(' ', out);
    hp_text_print(out, type[0] != '\0' ? type : unit);
  }
  fputc('\n', out);
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
  for (size_t i = 0; i < profile->comment_count; i++) {
    if (i == COMMENTS_SHOWN_MAX) {
      fprintf(out, "Comment:  ... and %zu more\n", profile->comment_count - i);
      break;
    }
    fputs("Comment:  ", out);
    hp_text_print(out, hp_profile_text(profile, profile->comments[i]));
    fputc('\n', out);
  }
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
