/* SPDX-License-Identifier: MIT
 * text_output.c - see text_output.h.
 */
#include "text_output.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

size_t hp_utf8_length(const char *text) {
  const unsigned char *byte = (const unsigned char *)text;
  if (byte[0] < 0x80) return byte[0] != '\0';
  size_t length;
  uint32_t code;
  if ((byte[0] & 0xe0) == 0xc0) {
    length = 2;
    code = byte[0] & 0x1f;
  } else if ((byte[0] & 0xf0) == 0xe0) {
    length = 3;
    code = byte[0] & 0x0f;
  } else if ((byte[0] & 0xf8) == 0xf0) {
    length = 4;
    code = byte[0] & 0x07;
  } else {
    return 0;
  }
  for (size_t i = 1; i < length; i++) { /* stops at the NUL, which is no continuation byte */
    if ((byte[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte[i] & 0x3f);
  }
  static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < lowest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  return length;
}

/* U+0080..U+009F are control characters too; their UTF-8 is C2 80..9F. */
static bool is_control(const char *text, size_t length) {
  unsigned char first = (unsigned char)text[0];
  if (length == 1) return first < 0x20 || first == 0x7f;
  return length == 2 && first == 0xc2 && (unsigned char)text[1] < 0xa0;
}

void hp_text_print(FILE *out, const char *text) {
  while (*text != '\0') {
    size_t plain = 0; /* names are nearly always all of it */
    while ((unsigned char)(text[plain] - 0x20) < 0x5f) plain++;
    if (plain != 0) fwrite(text, 1, plain, out);
    text += plain;
    if (*text == '\0') break;
    size_t length = hp_utf8_length(text);
    if (length != 0 && !is_control(text, length)) {
      fwrite(text, 1, length, out);
    } else {
      if (length == 0) length = 1;
      for (size_t i = 0; i < length; i++) fprintf(out, "\\x%02x", (unsigned)(unsigned char)text[i]);
    }
    text += length;
  }
}

void hp_json_begin(struct hp_json *json, FILE *out, bool indent) {
  memset(json, 0, sizeof *json);
  json->out = out;
  json->indent = indent;
}

static void put_text(struct hp_json *json, const char *text) {
  FILE *out = json->out;
  fputc('"', out);
  while (*text != '\0') {
    size_t length = hp_utf8_length(text);
    unsigned char first = (unsigned char)*text;
    if (length == 0) {
      fputs("\\ufffd", out);
      length = 1;
    } else if (first == '"' || first == '\\') {
      fputc('\\', out);
      fputc(first, out);
    } else if (first < 0x20 || first == 0x7f || first == '<' || first == '>' || first == '&') {
      fprintf(out, "\\u%04x", (unsigned)first);
    } else if (length == 3 && first == 0xe2 && text[1] == '\x80' && (text[2] == '\xa8' || text[2] == '\xa9')) {
      fprintf(out, "\\u20%02x", (unsigned)(unsigned char)text[2] - 0x80); /* line separators end a JavaScript string */
    } else {
      fwrite(text, 1, length, out);
    }
    text += length;
  }
  fputc('"', out);
}

/* Comma, line and key before an item. */
static void begin_item(struct hp_json *json, const char *key) {
  if (json->has_item[json->depth]) fputc(',', json->out);
  if (json->indent && json->depth > 0) {
    fputc('\n', json->out);
    for (unsigned i = 0; i < json->depth; i++) fputs("  ", json->out);
  }
  json->has_item[json->depth] = true;
  if (key == NULL) return;
  put_text(json, key);
  fputs(json->indent ? ": " : ":", json->out);
}

static void open_nested(struct hp_json *json, const char *key, char opening) {
  begin_item(json, key);
  fputc(opening, json->out);
  if (json->depth + 1 < sizeof json->has_item) json->depth++;
  json->has_item[json->depth] = false;
}

void hp_json_object(struct hp_json *json, const char *key) { open_nested(json, key, '{'); }

void hp_json_array(struct hp_json *json, const char *key) { open_nested(json, key, '['); }

void hp_json_end(struct hp_json *json, char closing) {
  bool had_items = json->has_item[json->depth];
  if (json->depth > 0) json->depth--;
  if (json->indent && had_items) {
    fputc('\n', json->out);
    for (unsigned i = 0; i < json->depth; i++) fputs("  ", json->out);
  }
  fputc(closing, json->out);
  if (json->depth == 0 && json->indent) fputc('\n', json->out);
}

void hp_json_string(struct hp_json *json, const char *key, const char *value) {
  begin_item(json, key);
  put_text(json, value);
}

void hp_json_integer(struct hp_json *json, const char *key, int64_t value) {
  begin_item(json, key);
  fprintf(json->out, "%" PRId64, value);
}

void hp_json_real(struct hp_json *json, const char *key, double value) {
  begin_item(json, key);
  if (isfinite(value))
    fprintf(json->out, "%.10g", value);
  else
    fputs("null", json->out);
}

void hp_json_bool(struct hp_json *json, const char *key, bool value) {
  begin_item(json, key);
  fputs(value ? "true" : "false", json->out);
}

void hp_json_null(struct hp_json *json, const char *key) {
  begin_item(json, key);
  fputs("null", json->out);
}
