/* SPDX-License-Identifier: MIT
 * units.h - numbers as people read them.
 */
#ifndef HP_UNITS_H
#define HP_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* Longest result of the functions below, with its NUL. */
#define HP_UNITS_MAX 48

/* A value in the unit of its sample type: "bytes" become B, KiB, MiB, GiB, TiB, PiB (three to four digits); "nanoseconds" ns, us,
 * ms, s; "count" and anything else the plain number, from 10 000 on as k, M, G. Negative values keep their sign. Returns out. */
const char *hp_units_format(int64_t value, const char *unit, char out[HP_UNITS_MAX]);

/* The same for a value that is no whole number: a standard error, a slope. */
const char *hp_units_format_real(double value, const char *unit, char out[HP_UNITS_MAX]);

/* Nanoseconds since 1970 as "2026-11-29 18:20:00 UTC"; 0: "unknown". */
const char *hp_units_format_time(int64_t time_nanos, char out[HP_UNITS_MAX]);

/* A span of nanoseconds as "1h23m", "12.5s", "3.2ms". */
const char *hp_units_format_duration(int64_t nanos, char out[HP_UNITS_MAX]);

#endif
