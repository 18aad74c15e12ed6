/* SPDX-License-Identifier: MIT
 * expression.h - regular expressions that somebody typed, compiled only where that takes bounded time, memory and stack.
 */
#ifndef HP_EXPRESSION_H
#define HP_EXPRESSION_H

#include <regex.h>

#include "cli_error.h"

/* Compiles a POSIX extended expression, for matching only. Refused, besides what is none: more than 2048 bytes (libc's compiler calls
 * itself for each bracket), repetition counts that stand for more than 2048 characters when written out (it writes them out), back
 * references (matching them takes time without bound, and POSIX has none here). `what` is the option's name for the sentence.
 * 0 and *out, which the caller gives to regfree; or -1 and a sentence. */
int hp_expression_compile(regex_t *out, const char *what, const char *text, struct hp_error *error);

#endif
