/* SPDX-License-Identifier: MIT
 * comments.c - see comments.h. */
#include "comments.h"

#include "allocator_stats.h"
#include "budget.h"
#include "dump.h"
#include "format.h"
#include "live_table.h"
#include "mathfn.h"
#include "process.h"
#include "recorder.h"
#include "resident.h"
#include "sampler.h"
#include "stack_table.h"
#include "unseen.h"

enum { LINES_MAX = 16, LINE_BYTES = 512 };

struct lines {
  struct hp_arena *arena;
  const char **lines;
  size_t count;
};

static void add_line(struct lines *out, const char *bytes, size_t n) {
  if (out->count == LINES_MAX) return;
  const char *copy = hp_arena_copy(out->arena, bytes, n);
  if (copy != NULL) out->lines[out->count++] = copy;
}

/* ---- the lines ---- */
bool hp_comments_losses(struct hp_text *out) {
  const struct hp_recorder_losses *l = &hp_recorder_losses;
  struct hp_dump_stats dumps;
  hp_dump_get_stats(&dumps);
  const struct {
    const char *key;
    uint64_t value;
  } all[] = {{"live_table_full", l->live_table_full},
             {"stack_table_full", l->stack_table_full},
             {"unwind_failed", l->unwind_failed},
             {"truncated", l->truncated},
             {"reentrant", l->reentrant},
             {"missed_frees", l->missed_frees},
             {"dump_failed", dumps.failed},
             {"saturated", hp_stack_table_saturated()}};
  bool any = false;
  for (size_t i = 0; i < HP_ARRAY_LENGTH(all); i++) {
    uint64_t value = hp_load_relaxed(&all[i].value);
    if (value == 0) continue;
    hp_text_add(out, " %s=%llu", all[i].key, (unsigned long long)value);
    any = true;
  }
  return any;
}

static void add_losses(struct lines *out) {
  char line[LINE_BYTES];
  struct hp_text text;
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text, "heapprof.lost");
  if (hp_comments_losses(&text)) add_line(out, line, text.length);
}

static void add_unseen(struct lines *out) {
  struct hp_unseen found = hp_unseen_found();
  char line[LINE_BYTES];
  struct hp_text text;
  if (found.resident_bytes == 0 && found.allocator_bytes == 0) return;
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text, "heapprof.unseen");
  if (found.resident_bytes != 0) hp_text_add(&text, " resident_bytes=%llu", (unsigned long long)found.resident_bytes);
  if (found.allocator_bytes != 0) hp_text_add(&text, " allocator_bytes=%llu", (unsigned long long)found.allocator_bytes);
  add_line(out, line, text.length);
}

static uint64_t standard_error(double variance) { return (uint64_t)(hp_math_sqrt(variance) + 0.5); }

static void add_totals(struct lines *out, const struct hp_books_sums *sums, bool is_past) {
  static const char *const keys[HP_VALUES] = {"alloc_objects", "alloc_bytes", "inuse_objects", "inuse_bytes"};
  char line[LINE_BYTES];
  struct hp_text text;
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text, "heapprof.totals");
  for (unsigned i = 0; i < HP_VALUES; i++) {
    hp_text_add(&text, " %s=%lld", keys[i], (long long)sums->values[i]);
    if (!is_past) hp_text_add(&text, " %s_se=%llu", keys[i], (unsigned long long)standard_error(sums->variances[i]));
  }
  add_line(out, line, text.length);
}

static void add_reconciliation(struct lines *out, const struct hp_books_sums *sums) {
  char line[LINE_BYTES];
  struct hp_text text;
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text, "heapprof.reconcile inuse_bytes=%lld inuse_se=%llu profiler_bytes=%zu",
              (long long)sums->values[HP_INUSE_BYTES], (unsigned long long)standard_error(sums->variances[HP_INUSE_BYTES]),
              hp_memory_used());
  struct hp_resident r;
  if (hp_resident_read(&r)) {
    hp_text_add(&text, " rss_anon_bytes=%llu rss_file_bytes=%llu", (unsigned long long)r.anon_bytes,
                (unsigned long long)r.file_bytes);
  }
  struct hp_allocator_figures f;
  hp_allocator_figures_get(&f);
  hp_text_add(&text, " allocator=%s", f.name);
  if (f.has_figures) {
    hp_text_add(&text,
                " allocator_inuse_bytes=%llu allocator_free_bytes=%llu allocator_mmap_bytes=%llu "
                "allocator_figures_age_seconds=%llu",
                (unsigned long long)f.inuse_bytes, (unsigned long long)f.free_bytes, (unsigned long long)f.mmap_bytes,
                (unsigned long long)(f.age_nanos / 1000000000u));
  }
  add_line(out, line, text.length);
}

size_t hp_comments_make(const struct hp_reading *reading, bool is_peak, bool is_past, struct hp_arena *arena,
                        const char *const **out_lines) {
  struct lines out = {.arena = arena, .lines = hp_arena_alloc(arena, LINES_MAX * sizeof(char *))};
  *out_lines = NULL;
  if (out.lines == NULL) return 0;
  struct hp_live_moments moments;
  hp_live_table_moments(&moments);
  char line[LINE_BYTES];
  struct hp_text text;
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text, "heapprof.version " HEAPPROF_VERSION);
  add_line(&out, line, text.length);
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text, "heapprof.sampling rate_bytes=%llu samples=%llu live_samples=%llu stacks=%u",
              (unsigned long long)hp_sampler_rate(), (unsigned long long)moments.samples,
              (unsigned long long)hp_live_table_count(), hp_stack_table_count() - HP_STACK_ID_FIRST);
  add_line(&out, line, text.length);
  struct hp_books_sums sums;
  hp_books_sums(reading, is_peak, &sums);
  add_totals(&out, &sums, is_past);
  if (!is_past) add_reconciliation(&out, &sums);
  add_losses(&out);
  if (!is_past) add_unseen(&out);
  *out_lines = out.lines;
  return out.count;
}
