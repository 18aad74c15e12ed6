/* SPDX-License-Identifier: MIT
 * utf8.h - file names, thread names and symbols are bytes; a protobuf string must be UTF-8. Pure; async-signal-safe. */
#ifndef HP_UTF8_H
#define HP_UTF8_H

#include "arena.h"

/* Length of the longest prefix that is whole, valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
size_t hp_utf8_valid_prefix(const char *bytes, size_t n);

/* A copy, 0 at its end, with U+FFFD in place of each byte that begins no valid sequence; NULL: no memory. *out_n gets its
 * length. */
char *hp_utf8_clean(struct hp_arena *arena, const char *bytes, size_t n, size_t *out_n);

#endif
