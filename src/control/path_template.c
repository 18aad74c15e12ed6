/* SPDX-License-Identifier: MIT
 * path_template.c - see path_template.h. */
#include "path_template.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "config.h"
#include "format.h"
#include "sys.h"

static const char SUFFIX[] = ".pb.gz";

static void add_safe(struct hp_text *text, const char *word) {
  for (; *word != 0; word++) {
    unsigned char c = (unsigned char)*word;
    hp_text_add_char(text, c == '/' || c < ' ' || c == 0x7F ? '_' : (char)c);
  }
}

static void add_host_name(struct hp_text *text) {
  struct utsname name;
  if (hp_syscall1(SYS_uname, &name) != 0) {
    hp_text_add(text, "localhost");
    return;
  }
  name.nodename[sizeof name.nodename - 1] = 0;
  add_safe(text, name.nodename);
}

static void add_escape(struct hp_text *text, char letter, const struct hp_path_facts *facts) {
  switch (letter) {
    case 'p': hp_text_add(text, "%d", facts->pid); break;
    case 'n': hp_text_add(text, "%llu", (unsigned long long)facts->dump_number); break;
    case 'e': add_safe(text, facts->executable); break;
    case 'h': add_host_name(text); break;
    case 't': hp_text_add(text, "%lld", (long long)facts->unix_seconds); break;
    case '%': hp_text_add_char(text, '%'); break;
    default: hp_text_add_char(text, '%'); hp_text_add_char(text, letter);
  }
}

static void add_template(struct hp_text *text, const char *path_template, const struct hp_path_facts *facts) {
  for (const char *at = path_template; *at != 0; at++) {
    if (at[0] == '%' && at[1] != 0) {
      add_escape(text, at[1], facts);
      at++;
    } else {
      hp_text_add_char(text, at[0]);
    }
  }
}

static void add_kind(struct hp_text *text, const char *kind) {
  size_t suffix = sizeof SUFFIX - 1;
  bool has_suffix = text->length >= suffix && memcmp(text->bytes + text->length - suffix, SUFFIX, suffix) == 0;
  if (has_suffix && !text->is_cut) text->length -= suffix;
  hp_text_add(text, ".%s", kind);
  if (has_suffix) hp_text_add(text, "%s", SUFFIX);
}

int hp_path_expand(const char *path_template, const struct hp_path_facts *facts, const char *kind, char *out,
                   size_t capacity) {
  struct hp_text text;
  hp_text_init(&text, out, capacity);
  if (path_template[0] != '/') {
    if (facts->directory == NULL || facts->directory[0] != '/') return -ENOENT;
    hp_text_add(&text, "%s/", strcmp(facts->directory, "/") == 0 ? "" : facts->directory);
  }
  add_template(&text, path_template, facts);
  if (text.length > 0 && text.bytes[text.length - 1] == '/') add_template(&text, HP_DEFAULT_TEMPLATE, facts);
  if (kind != NULL) add_kind(&text, kind);
  return text.is_cut ? -ENAMETOOLONG : 0;
}

bool hp_path_has_unknown_escape(const char *path_template, char *out_escape) {
  for (const char *at = path_template; *at != 0; at++) {
    if (at[0] != '%' || at[1] == 0) continue;
    at++;
    if (strchr("pneht%", *at) == NULL) {
      *out_escape = *at;
      return true;
    }
  }
  return false;
}
