/* SPDX-License-Identifier: MIT
 * utf8.c - see utf8.h; the table of well-formed sequences is Unicode's (section 3.9, table 3-7). */
#include "utf8.h"

#include <string.h>

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Length of the sequence at p (n >= 1 bytes left), 0 if it is not well formed. */
static size_t sequence_length(const unsigned char *p, size_t n) {
  if (p[0] < 0x80) return 1;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  size_t length;
  if (p[0] >= 0xC2 && p[0] <= 0xDF) {
    length = 2;
  } else if ((p[0] & 0xF0) == 0xE0) {
    length = 3;
    if (p[0] == 0xE0) low = 0xA0;  /* below: overlong */
    if (p[0] == 0xED) high = 0x9F; /* above: surrogates */
  } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
    length = 4;
    if (p[0] == 0xF0) low = 0x90;
    if (p[0] == 0xF4) high = 0x8F; /* above: beyond U+10FFFF */
  } else {
    return 0;
  }
  if (n < length || p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < length; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  return length;
}

size_t hp_utf8_valid_prefix(const char *bytes, size_t n) {
  const unsigned char *p = (const unsigned char *)bytes;
  size_t i = 0;
  while (i < n) {
    uint64_t eight;
    if (n - i >= sizeof eight) {
      memcpy(&eight, p + i, sizeof eight);
      if ((eight & 0x8080808080808080ull) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    size_t length = sequence_length(p + i, n - i);
    if (length == 0) break;
    i += length;
  }
  return i;
}

char *hp_utf8_clean(struct hp_arena *arena, const char *bytes, size_t n, size_t *out_n) {
  const size_t replacement = sizeof REPLACEMENT - 1;
  if (n > SIZE_MAX / replacement - 1) return NULL;
  char *clean = hp_arena_alloc(arena, n * replacement + 1);
  if (clean == NULL) return NULL;
  size_t used = 0;
  for (size_t i = 0; i < n;) {
    size_t valid = hp_utf8_valid_prefix(bytes + i, n - i);
    memcpy(clean + used, bytes + i, valid);
    used += valid;
    i += valid;
    if (i < n) {
      memcpy(clean + used, REPLACEMENT, replacement);
      used += replacement;
      i++;
    }
  }
  *out_n = used;
  return clean;
}
