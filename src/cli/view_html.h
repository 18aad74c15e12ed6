/* SPDX-License-Identifier: MIT
 * view_html.h - the whole page: the parts from view_page.h with the data in its place.
 */
#ifndef HP_VIEW_HTML_H
#define HP_VIEW_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "cli_error.h"

/* Writes the page. `data` is JSON text (view_data.h); it is gzipped and written in base64, so no byte of it can be read as
 * markup. The title is escaped. Errors of writing show in ferror(out); 0, or -1 when zlib fails. */
int hp_view_html_write(FILE *out, const char *title, const char *data, size_t data_bytes, struct hp_error *error);

/* Base64 of bytes[0..count), to the file. */
void hp_view_base64_write(FILE *out, const unsigned char *bytes, size_t count);

#endif
