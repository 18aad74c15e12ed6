/* SPDX-License-Identifier: MIT
 * cli_error.c - see cli_error.h.
 */
#include "cli_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "text_output.h"

/* A sentence stays one line and cannot drive the terminal: bytes below space and DEL become '?'. */
static void make_printable(char *text) {
  for (; *text != '\0'; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
}

static void set(struct hp_error *error, const char *format, va_list arguments) {
  vsnprintf(error->text, sizeof error->text, format, arguments);
  make_printable(error->text);
}

int hp_error_set(struct hp_error *error, const char *format, ...) {
  if (error == NULL) return -1;
  va_list arguments;
  va_start(arguments, format);
  set(error, format, arguments);
  va_end(arguments);
  return -1;
}

int hp_fail(const struct hp_error *error) {
  hp_note("%s", error->text);
  return 1;
}

int hp_usage(const char *verb, const char *format, ...) {
  struct hp_error error;
  va_list arguments;
  va_start(arguments, format);
  set(&error, format, arguments);
  va_end(arguments);
  fflush(stdout);
  fprintf(stderr, "heapprof %s: ", verb);
  hp_text_print(stderr, error.text);
  fprintf(stderr, " (see heapprof %s --help)\n", verb);
  return 2;
}

void hp_note(const char *format, ...) {
  struct hp_error error;
  va_list arguments;
  va_start(arguments, format);
  set(&error, format, arguments);
  va_end(arguments);
  fflush(stdout);
  fputs("heapprof: ", stderr);
  hp_text_print(stderr, error.text);
  fputc('\n', stderr);
}
