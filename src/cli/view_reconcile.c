/* SPDX-License-Identifier: MIT
 * view_reconcile.c - see view_reconcile.h.
 */
#include "view_reconcile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "heapprof.reconcile";

const char *const hp_reconcile_names[HP_RECONCILE_COUNT] = {
    "inuse_bytes",    "inuse_se",       "allocator_inuse_bytes", "allocator_free_bytes",          "allocator_mmap_bytes",
    "rss_anon_bytes", "rss_file_bytes", "profiler_bytes",        "allocator_figures_age_seconds",
};

static void take(struct hp_reconcile *out, const char *key, size_t key_length, const char *value, size_t value_length) {
  if (key_length == 9 && memcmp(key, "allocator", 9) == 0) {
    size_t kept = value_length < sizeof out->allocator - 1 ? value_length : sizeof out->allocator - 1;
    memcpy(out->allocator, value, kept);
    out->allocator[kept] = '\0';
    return;
  }
  for (int i = 0; i < HP_RECONCILE_COUNT; i++) {
    if (strlen(hp_reconcile_names[i]) != key_length || memcmp(hp_reconcile_names[i], key, key_length) != 0) continue;
    char *end;
    errno = 0;
    double number = strtod(value, &end);
    if (end == value || errno != 0 || !(number >= 0) || number > 9e18) return;
    out->bytes[i] = (int64_t)number;
    out->has_any = true;
  }
}

void hp_view_reconcile_read(const struct hp_profile *profile, struct hp_reconcile *out) {
  memset(out, 0, sizeof *out);
  for (int i = 0; i < HP_RECONCILE_COUNT; i++) out->bytes[i] = -1;
  for (size_t c = 0; c < profile->comment_count; c++) {
    const char *at = hp_profile_text(profile, profile->comments[c]);
    if (strncmp(at, prefix, sizeof prefix - 1) != 0) continue;
    at += sizeof prefix - 1;
    while (*at != '\0') {
      at += strcspn(at, " \t,:;");
      at += strspn(at, " \t,:;");
      size_t key_length = strcspn(at, "= \t");
      if (at[key_length] != '=') continue;
      const char *value = at + key_length + 1;
      take(out, at, key_length, value, strcspn(value, " \t,;"));
    }
  }
}

void hp_view_reconcile_write(struct hp_json *json, const char *key, const struct hp_profile *profile) {
  struct hp_reconcile figures;
  hp_view_reconcile_read(profile, &figures);
  if (!figures.has_any) {
    hp_json_null(json, key);
    return;
  }
  hp_json_object(json, key);
  for (int i = 0; i < HP_RECONCILE_COUNT; i++)
    if (figures.bytes[i] >= 0) hp_json_integer(json, hp_reconcile_names[i], figures.bytes[i]);
  if (figures.allocator[0] != '\0') hp_json_string(json, "allocator", figures.allocator);
  hp_json_end(json, '}');
}
