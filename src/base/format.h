/* SPDX-License-Identifier: MIT
 * format.h - text into a bounded buffer without stdio: no locale, no allocation, no lock. Async-signal-safe. */
#ifndef HP_FORMAT_H
#define HP_FORMAT_H

#include <stdarg.h>

#include "compiler.h"

/* A buffer being filled. Always 0-terminated; what does not fit is cut (and is_cut says so). capacity >= 1. */
struct hp_text {
  char *bytes;
  size_t capacity;
  size_t length;
  bool is_cut;
};

/* Empty, over bytes[0..capacity), which stay the caller's. */
void hp_text_init(struct hp_text *text, char *bytes, size_t capacity);
void hp_text_add_char(struct hp_text *text, char c);

/* Knows %s %.*s %c %d %u %ld %lu %lld %llu %zu %x %lx %% and, for int and unsigned, a width with 0 ("%02u"). */
void hp_text_add(struct hp_text *text, const char *format, ...) HP_PRINTF(2, 3);
void hp_text_vadd(struct hp_text *text, const char *format, va_list args);

#endif
