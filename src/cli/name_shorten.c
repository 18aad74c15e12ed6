/* SPDX-License-Identifier: MIT
 * name_shorten.c - see name_shorten.h.
 *
 * Brackets are not always brackets: "operator<<", "->", and a ">" in parentheses are none; Rust's "<T as Trait>::method" begins with one
 * whose inside is the name. What does not pair up is left as it is and only loses its middle.
 */
#include "name_shorten.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli_memory.h"
#include "text_output.h"

/* With less room than ROOM_MIN a row takes a second line. Names with deeper brackets than NESTING_MAX are not understood. */
enum { ROOM_MIN = 48, NESTING_MAX = 64, DOTS = 3 };

size_t hp_terminal_width(FILE *out) {
  struct winsize size;
  int fd = fileno(out);
  return fd >= 0 && isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

size_t hp_name_room(size_t width, size_t used) {
  if (width == 0) return 0;
  size_t room = width > used ? width - used : 0;
  while (room < ROOM_MIN) room += width;
  return room;
}

static size_t character_count(const char *text) {
  size_t count = 0;
  for (; *text != '\0'; text++) count += ((unsigned char)*text & 0xc0) != 0x80;
  return count;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80; }

/* Bytes at `at` that are an operator's name or an arrow: no brackets in there. 0: none. */
static size_t sign_length(const char *name, size_t at) {
  static const char *const signs[] = {"<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">"};
  if (strncmp(name + at, "->", 2) == 0) return 2;
  if (strncmp(name + at, "operator", 8) != 0 || (at > 0 && is_word(name[at - 1]))) return 0;
  for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
    if (strncmp(name + at + 8, signs[i], strlen(signs[i])) == 0) return 8 + strlen(signs[i]);
  return 0;
}

/* Just behind the bracket that closes the one at `open`; 0: there is none. */
static size_t group_end(const char *name, size_t open) {
  char closers[NESTING_MAX];
  size_t depth = 0;
  for (size_t at = open; name[at] != '\0'; at++) {
    size_t sign = at != open ? sign_length(name, at) : 0;
    if (sign != 0) {
      at += sign - 1;
      continue;
    }
    char c = name[at];
    bool in_angles = depth == 0 || closers[depth - 1] == '>';
    if (c == '(' || c == '{' || c == '[' || (c == '<' && in_angles)) {
      if (depth == NESTING_MAX) return 0;
      closers[depth++] = (char)(c == '(' ? ')' : c + 2); /* "<>", "[]" and "{}" are two apart */
    } else if (c == ')' || c == '}' || c == ']' || (c == '>' && in_angles)) {
      if (closers[depth - 1] != c) return 0;
      if (--depth == 0) return at + 1;
    }
  }
  return 0;
}

/* Template arguments follow a word, "::" (Rust) or "operator<< "; a "<" elsewhere begins a name. */
static bool is_template(const char *name, size_t at) {
  if (name[at] != '<' || at == 0) return false;
  return is_word(name[at - 1]) || name[at - 1] == ':' ||
         (name[at - 1] == ' ' && at > 1 && strchr("<>=-*)", name[at - 2]) != NULL);
}

static bool is_parameters(const char *name, size_t at) {
  static const char anonymous[] = "(anonymous namespace)";
  return name[at] == '(' && strncmp(name + at, anonymous, sizeof anonymous - 1) != 0;
}

/* The name with the template arguments beyond `kept` levels, and parameters if asked, as "...". Null: it does not pair up. */
static char *collapse(const char *name, size_t kept, bool parameters) {
  char *out = hp_alloc(strlen(name) + 1);
  size_t used = 0, depth = 0;
  for (size_t at = 0; name[at] != '\0';) {
    size_t length = sign_length(name, at);
    bool opens = length == 0 && is_template(name, at);
    if (opens && depth < kept) depth++, opens = false;
    if (length == 0 && depth > 0 && name[at] == '>') depth--;
    if (length == 0) length = 1;
    if (opens || (parameters && length == 1 && is_parameters(name, at))) {
      size_t end = group_end(name, at);
      if (end == 0) {
        free(out);
        return NULL;
      }
      if (end - at > DOTS + 2) {
        out[used++] = name[at];
        memset(out + used, '.', DOTS);
        used += DOTS;
        out[used++] = name[end - 1];
        at = end;
        continue;
      }
      length = end - at;
    }
    memcpy(out + used, name + at, length);
    used += length;
    at += length;
  }
  out[used] = '\0';
  return out;
}

/* Both ends of the name, cut between characters. */
static char *drop_middle(const char *name, size_t room) {
  size_t count = character_count(name), head = room > DOTS ? (room - DOTS) / 2 : 0,
         tail = room > DOTS ? room - DOTS - head : 0;
  const char *end_of_head = name, *tail_start = name;
  for (size_t seen = 0; *tail_start != '\0'; tail_start++) {
    bool begins = ((unsigned char)*tail_start & 0xc0) != 0x80;
    if (begins && seen == head) end_of_head = tail_start;
    if (begins && seen == count - tail) break;
    seen += begins;
  }
  return hp_format("%.*s...%s", (int)(end_of_head - name), name, tail_start);
}

char *hp_name_shorten(const char *name, size_t room) {
  static const struct {
    size_t kept;
    bool parameters;
  } steps[] = {{2, false}, {1, false}, {0, false}, {0, true}};
  if (room == 0 || character_count(name) <= room) return NULL;
  char *shorter = NULL;
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    char *next = collapse(name, steps[i].kept, steps[i].parameters);
    if (next == NULL) break;
    free(shorter);
    shorter = next;
    if (character_count(shorter) <= room) return shorter;
  }
  char *cut = drop_middle(shorter != NULL ? shorter : name, room);
  free(shorter);
  return cut;
}

void hp_name_print(FILE *out, const char *name, size_t room) {
  char *shorter = hp_name_shorten(name, room);
  hp_text_print(out, shorter != NULL ? shorter : name);
  free(shorter);
}
