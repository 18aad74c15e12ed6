/* SPDX-License-Identifier: MIT
 * text_output.h - bytes from untrusted files, made fit for a terminal and for JSON.
 */
#ifndef HP_TEXT_OUTPUT_H
#define HP_TEXT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Prints text with control characters and bytes that are not UTF-8 as \xNN, so that no file name can drive the terminal. */
void hp_text_print(FILE *out, const char *text);

/* The length of the valid UTF-8 sequence at `text` (1 to 4), or 0 if there is none. text is NUL-terminated. */
size_t hp_utf8_length(const char *text);

/* A JSON writer: keeps track of commas and nesting (at most 32 deep); writes as it goes; errors show in ferror(out).
 * Inside an object every value needs a key, inside an array it is null. Numbers beyond 2^53 are written in full. Bytes that are not UTF-8
 * become U+FFFD. "<", ">" and "&" are written as \u00XX, so that the text can stand inside an HTML script element. */
struct hp_json {
  FILE *out;
  unsigned depth;
  bool has_item[33];
  bool indent; /* one item a line; else compact */
};

void hp_json_begin(struct hp_json *json, FILE *out, bool indent);
void hp_json_object(struct hp_json *json, const char *key);
void hp_json_array(struct hp_json *json, const char *key);
void hp_json_end(struct hp_json *json, char closing); /* '}' or ']' */
void hp_json_string(struct hp_json *json, const char *key, const char *value);
void hp_json_integer(struct hp_json *json, const char *key, int64_t value);
void hp_json_real(struct hp_json *json, const char *key, double value); /* not finite: null */
void hp_json_bool(struct hp_json *json, const char *key, bool value);
void hp_json_null(struct hp_json *json, const char *key);

#endif
