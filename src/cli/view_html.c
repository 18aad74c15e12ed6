/* SPDX-License-Identifier: MIT
 * view_html.c - see view_html.h.
 */
#include "view_html.h"

#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "text_output.h"
#include "view_page.h"

void hp_view_base64_write(FILE *out, const unsigned char *bytes, size_t count) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < count; i += 3) {
    unsigned left = (unsigned)(count - i < 3 ? count - i : 3);
    unsigned word = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
    fputc(digits[word >> 18], out);
    fputc(digits[word >> 12 & 63], out);
    fputc(left > 1 ? digits[word >> 6 & 63] : '=', out);
    fputc(left > 2 ? digits[word & 63] : '=', out);
  }
}

static void write_hash(FILE *out, const char *hex) {
  unsigned char bytes[32] = {0};
  for (size_t i = 0; i < sizeof bytes && sscanf(hex + 2 * i, "%2hhx", &bytes[i]) == 1; i++) continue;
  fputs("'sha256-", out);
  hp_view_base64_write(out, bytes, sizeof bytes);
  fputc('\'', out);
}

/* Nothing may be loaded, and of what is in the page only our own script and style sheet may act. */
static void write_policy(FILE *out) {
  fputs("default-src 'none'; script-src ", out);
  write_hash(out, hp_view_page_js_sha256);
  fputs("; style-src ", out);
  write_hash(out, hp_view_page_css_sha256);
  fputs("; img-src data:; base-uri 'none'; form-action 'none'", out);
}

static void write_escaped(FILE *out, const char *text) {
  while (*text != '\0') {
    size_t length = hp_utf8_length(text);
    unsigned char first = (unsigned char)*text;
    if (length == 0) {
      fputs("&#xfffd;", out);
      length = 1;
    } else if (first < 0x20 || first == 0x7f) {
      fputc(' ', out);
    } else if (strchr("<>&\"'", first) != NULL) {
      fprintf(out, "&#%u;", (unsigned)first);
    } else {
      fwrite(text, 1, length, out);
    }
    text += length;
  }
}

/* Deflates in pieces and keeps the base64 groups whole across them. */
static int write_data(FILE *out, const char *data, size_t data_bytes, struct hp_error *error) {
  z_stream deflater = {0};
  if (deflateInit2(&deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return hp_error_set(error, "cannot start to compress the page's data");
  unsigned char buffer[3 * 8192];
  size_t held = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (deflater.avail_in == 0 && data_bytes > 0) {
      deflater.next_in = (unsigned char *)(uintptr_t)data;
      deflater.avail_in = data_bytes > 1u << 30 ? 1u << 30 : (unsigned)data_bytes;
      data += deflater.avail_in;
      data_bytes -= deflater.avail_in;
    }
    deflater.next_out = buffer + held;
    deflater.avail_out = (unsigned)(sizeof buffer - held);
    state = deflate(&deflater, data_bytes == 0 ? Z_FINISH : Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) break;
    held = sizeof buffer - deflater.avail_out;
    size_t whole = state == Z_STREAM_END ? held : held - held % 3;
    hp_view_base64_write(out, buffer, whole);
    memmove(buffer, buffer + whole, held - whole);
    held -= whole;
  }
  deflateEnd(&deflater);
  return state == Z_STREAM_END ? 0 : hp_error_set(error, "cannot compress the page's data");
}

int hp_view_html_write(FILE *out, const char *title, const char *data, size_t data_bytes, struct hp_error *error) {
  const char *at = hp_view_page_html;
  while (*at != '\0') {
    size_t plain = strcspn(at, "@");
    fwrite(at, 1, plain, out);
    at += plain;
    if (*at == '\0') break;
    int result = 0;
    const char *end = strchr(at + 1, '@');
    size_t length = end != NULL ? (size_t)(end - at) - 1 : 0;
    const char *name = at + 1;
    if (length == 3 && memcmp(name, "CSP", 3) == 0)
      write_policy(out);
    else if (length == 3 && memcmp(name, "CSS", 3) == 0)
      fputs(hp_view_page_css, out);
    else if (length == 2 && memcmp(name, "JS", 2) == 0)
      fputs(hp_view_page_js, out);
    else if (length == 5 && memcmp(name, "TITLE", 5) == 0)
      write_escaped(out, title);
    else if (length == 7 && memcmp(name, "VERSION", 7) == 0)
      fputs(HEAPPROF_VERSION, out);
    else if (length == 4 && memcmp(name, "DATA", 4) == 0)
      result = write_data(out, data, data_bytes, error);
    if (result != 0) return result;
    at = end != NULL ? end + 1 : at + 1;
  }
  return 0;
}
