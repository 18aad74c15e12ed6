/* SPDX-License-Identifier: MIT
 * name_shorten.h - names of C++ and Rust templates, which may be pages long, made to fit a line of a terminal.
 */
#ifndef HP_NAME_SHORTEN_H
#define HP_NAME_SHORTEN_H

#include <stddef.h>
#include <stdio.h>

/* Columns of the terminal behind `out`; 0: it is no terminal, or does not say. */
size_t hp_terminal_width(FILE *out);

/* The room for a name after `used` columns of a row: what is left of the line, and the next line if that is little. 0 (no bound) for
 * width 0. */
size_t hp_name_room(size_t width, size_t used);

/* The name with template arguments, inner ones first, then parameters, then its middle replaced by "..." until it has at most `room`
 * characters. Null if it fits as it is or room is 0; else the caller frees it. */
char *hp_name_shorten(const char *name, size_t room);

/* hp_text_print of the name, shortened. */
void hp_name_print(FILE *out, const char *name, size_t room);

#endif
