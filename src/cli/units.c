/* SPDX-License-Identifier: MIT
 * units.c - see units.h.
 */
#include "units.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct scale {
  double step;
  const char *suffix[7];
};

static const struct scale byte_scale = {1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL}};
static const struct scale count_scale = {1000, {"", "k", "M", "G", "T", "P", NULL}};
static const struct scale nano_scale = {1000, {"ns", "us", "ms", "s", NULL}};

static const struct scale *scale_of(const char *unit) {
  if (strcmp(unit, "bytes") == 0 || strcmp(unit, "byte") == 0) return &byte_scale;
  if (strcmp(unit, "nanoseconds") == 0) return &nano_scale;
  return &count_scale;
}

const char *hp_units_format_real(double value, const char *unit, char out[HP_UNITS_MAX]) {
  const struct scale *scale = scale_of(unit);
  double size = fabs(value);
  /* Counts stay whole as long as they fit a column: 9999, then 10.0k. */
  double first_limit = scale == &count_scale ? 10000 : scale->step;
  unsigned step = 0;
  double limit = first_limit;
  while (size >= limit - 0.5 && scale->suffix[step + 1] != NULL) {
    size /= scale->step;
    step++;
    limit = scale->step;
  }
  bool whole = step == 0 && size == floor(size);
  int decimals = whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  snprintf(out, HP_UNITS_MAX, "%s%.*f%s", value < 0 ? "-" : "", decimals, size, scale->suffix[step]);
  return out;
}

const char *hp_units_format(int64_t value, const char *unit, char out[HP_UNITS_MAX]) {
  return hp_units_format_real((double)value, unit, out);
}

const char *hp_units_format_time(int64_t time_nanos, char out[HP_UNITS_MAX]) {
  time_t seconds = (time_t)(time_nanos / 1000000000);
  struct tm calendar;
  if (time_nanos <= 0 || gmtime_r(&seconds, &calendar) == NULL)
    snprintf(out, HP_UNITS_MAX, "unknown");
  else
    strftime(out, HP_UNITS_MAX, "%Y-%m-%d %H:%M:%S UTC", &calendar);
  return out;
}

const char *hp_units_format_duration(int64_t nanos, char out[HP_UNITS_MAX]) {
  int64_t seconds = nanos / 1000000000;
  if (seconds < 60) return hp_units_format(nanos, "nanoseconds", out);
  if (seconds < 3600)
    snprintf(out, HP_UNITS_MAX, "%" PRId64 "m%02" PRId64 "s", seconds / 60, seconds % 60);
  else if (seconds < 86400)
    snprintf(out, HP_UNITS_MAX, "%" PRId64 "h%02" PRId64 "m", seconds / 3600, seconds / 60 % 60);
  else
    snprintf(out, HP_UNITS_MAX, "%" PRId64 "d%02" PRId64 "h", seconds / 86400, seconds / 3600 % 24);
  return out;
}
