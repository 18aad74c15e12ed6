/* SPDX-License-Identifier: MIT
 * format.c - see format.h. */
#include "format.h"

#include <string.h>

void hp_text_init(struct hp_text *text, char *bytes, size_t capacity) {
  *text = (struct hp_text){.bytes = bytes, .capacity = capacity};
  bytes[0] = 0;
}

static void add_bytes(struct hp_text *text, const char *bytes, size_t n) {
  size_t room = text->capacity - 1 - text->length;
  if (n > room) {
    n = room;
    text->is_cut = true;
  }
  memcpy(text->bytes + text->length, bytes, n);
  text->length += n;
  text->bytes[text->length] = 0;
}

void hp_text_add_char(struct hp_text *text, char c) { add_bytes(text, &c, 1); }

static void add_number(struct hp_text *text, uint64_t value, unsigned base, bool is_negative, unsigned width) {
  char digits[24];
  size_t at = sizeof digits;
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  while (sizeof digits - at < width && at > 1) digits[--at] = '0';
  if (is_negative) digits[--at] = '-';
  add_bytes(text, digits + at, sizeof digits - at);
}

static int64_t signed_argument(va_list *args, int longs) {
  return longs == 0 ? va_arg(*args, int) : longs == 1 ? va_arg(*args, long) : va_arg(*args, long long);
}
static uint64_t unsigned_argument(va_list *args, int longs) {
  return longs == 0   ? va_arg(*args, unsigned)
         : longs == 1 ? va_arg(*args, unsigned long)
                      : va_arg(*args, unsigned long long);
}

/* One conversion, *at just behind the '%'. args is passed as a pointer so that what is taken stays taken. */
static const char *add_conversion(struct hp_text *text, const char *at, va_list *args) {
  unsigned width = 0;
  int longs = 0;
  int precision = -1;
  while (*at >= '0' && *at <= '9') width = width * 10 + (unsigned)(*at++ - '0');
  if (at[0] == '.' && at[1] == '*') {
    precision = va_arg(*args, int);
    at += 2;
  }
  for (; *at == 'l' || *at == 'z'; at++) longs++;
  switch (*at) {
    case 's': {
      const char *s = va_arg(*args, const char *);
      if (s == NULL) s = "(null)";
      add_bytes(text, s, precision >= 0 ? strnlen(s, (size_t)precision) : strlen(s));
      break;
    }
    case 'c': hp_text_add_char(text, (char)va_arg(*args, int)); break;
    case 'd': {
      int64_t value = signed_argument(args, longs);
      add_number(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, value < 0, width);
      break;
    }
    case 'u': add_number(text, unsigned_argument(args, longs), 10, false, width); break;
    case 'x': add_number(text, unsigned_argument(args, longs), 16, false, width); break;
    case '%': hp_text_add_char(text, '%'); break;
    default: return at;
  }
  return at + 1;
}

void hp_text_vadd(struct hp_text *text, const char *format, va_list args) {
  va_list copy;
  va_copy(copy, args);
  while (*format != 0) {
    const char *percent = format;
    while (*percent != 0 && *percent != '%') percent++;
    add_bytes(text, format, (size_t)(percent - format));
    format = percent;
    if (*format == '%') format = add_conversion(text, format + 1, &copy);
  }
  va_end(copy);
}

void hp_text_add(struct hp_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  hp_text_vadd(text, format, args);
  va_end(args);
}
