/* SPDX-License-Identifier: MIT
 * expression.c - see expression.h.
 *
 * How long an expression is when its counts are written out is estimated by one walk over it: an atom counts 1, a group what is in it,
 * and a count multiplies what is before it. Text that is no valid expression may get a wrong length: regcomp refuses it anyway.
 */
#include "expression.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EXPRESSION_BYTES_MAX = 2048, WRITTEN_OUT_MAX = 2048, COUNT_MAX = 1 << 16 };

/* Behind a bracket expression that starts at `at`: "[]a]", "[^]a]" and "[[:alpha:]]" have brackets inside. */
static const char *skip_brackets(const char *at) {
  at++;
  if (*at == '^') at++;
  if (*at == ']') at++;
  while (*at != '\0' && *at != ']') {
    if (*at == '[' && at[1] != '\0' && strchr(":.=", at[1]) != NULL) {
      const char closing[] = {at[1], ']', '\0'};
      const char *end = strstr(at + 2, closing);
      if (end == NULL) return at + strlen(at);
      at = end + 1;
    }
    at++;
  }
  return *at != '\0' ? at + 1 : at;
}

/* The larger of the numbers in "{m,n}", at least 1; *at: behind it. */
static long read_count(const char **at) {
  long most = 1;
  for (*at += 1; **at != '\0' && **at != '}';) {
    char *end;
    long number = strtol(*at, &end, 10);
    if (number > most) most = number;
    *at = end != *at ? end : *at + 1;
  }
  if (**at == '}') *at += 1;
  return most < COUNT_MAX ? most : COUNT_MAX;
}

/* Characters of the expression with its counts written out; WRITTEN_OUT_MAX + 1: more than that. */
static long written_out(const char *text) {
  long before[EXPRESSION_BYTES_MAX + 1]; /* what each open group began after */
  size_t depth = 0;
  long total = 0, atom = 0; /* the atom is the end of total */
  for (const char *at = text; *at != '\0' && total <= WRITTEN_OUT_MAX;) {
    switch (*at) {
      case '(':
        before[depth++] = total;
        atom = 0;
        at++;
        break;
      case ')':
        total++; /* an empty group is repeated, too */
        atom = depth > 0 ? total - before[--depth] : 0;
        at++;
        break;
      case '{': {
        long more = atom * (read_count(&at) - 1);
        atom += more;
        total += more;
        break;
      }
      case '*':
      case '+':
      case '?': at++; break;
      default:
        atom = 1;
        total++;
        at = *at == '[' ? skip_brackets(at) : *at == '\\' && at[1] != '\0' ? at + 2 : at + 1;
        break;
    }
  }
  return total;
}

static bool has_back_reference(const char *text) {
  for (const char *at = text; *at != '\0';) {
    if (*at == '\\' && at[1] >= '1' && at[1] <= '9') return true;
    at = *at == '[' ? skip_brackets(at) : *at == '\\' && at[1] != '\0' ? at + 2 : at + 1;
  }
  return false;
}

int hp_expression_compile(regex_t *out, const char *what, const char *text, struct hp_error *error) {
  if (strlen(text) > EXPRESSION_BYTES_MAX)
    return hp_error_set(error, "bad expression for %s: longer than %d bytes", what, EXPRESSION_BYTES_MAX);
  if (has_back_reference(text))
    return hp_error_set(error, "bad expression for %s: back references are not known here", what);
  if (written_out(text) > WRITTEN_OUT_MAX)
    return hp_error_set(error, "bad expression for %s: its repetitions, written out, are more than %d characters", what,
                        WRITTEN_OUT_MAX);
  int result = regcomp(out, text, REG_EXTENDED | REG_NOSUB);
  if (result == 0) return 0;
  char why[128];
  regerror(result, out, why, sizeof why);
  return hp_error_set(error, "bad expression for %s: %s", what, why);
}
