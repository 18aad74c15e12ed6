/* SPDX-License-Identifier: MIT
 * comments.c - see comments.h. */
#include "comments.h"

#include <sys/auxv.h>

#include "allocator_stats.h"
#include "dump.h"
#include "format.h"
#include "heap.h"
#include "live_table.h"
#include "mathfn.h"
#include "process.h"
#include "recorder.h"
#include "sampler.h"
#include "stack_table.h"
#include "sys.h"

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

/* ---- RSS, from /proc/self/statm: what smaps_rollup says costs a walk of all pages under the program's mmap lock, and
 * status ten times the formatting ---- */
struct resident {
  uint64_t anon_bytes;
  uint64_t file_bytes; /* shared memory too */
};

static bool read_resident(struct resident *out) {
  /* /proc/self is empty once the main thread has left by pthread_exit */
  int fd = hp_sys_open("/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) fd = hp_sys_open("/proc/thread-self/statm", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  char text[128];
  long n = hp_sys_read(fd, text, sizeof text - 1);
  hp_sys_close(fd);
  if (n <= 0) return false;
  text[n] = 0;
  uint64_t pages[3] = {0}; /* size, resident, shared */
  const char *at = text;
  for (unsigned i = 0; i < HP_ARRAY_LENGTH(pages); i++, at++) {
    if (*at < '0' || *at > '9') return false;
    for (; *at >= '0' && *at <= '9'; at++) pages[i] = pages[i] * 10 + (uint64_t)(*at - '0');
  }
  uint64_t page_bytes = getauxval(AT_PAGESZ);
  out->file_bytes = pages[2] * page_bytes;
  out->anon_bytes = pages[1] > pages[2] ? (pages[1] - pages[2]) * page_bytes : 0;
  return true;
}

/* ---- the lines ---- */
static void add_losses(struct lines *out) {
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
  char line[LINE_BYTES];
  struct hp_text text;
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text, "heapprof.lost");
  bool any = false;
  for (size_t i = 0; i < HP_ARRAY_LENGTH(all); i++) {
    uint64_t value = hp_load_relaxed(&all[i].value);
    if (value == 0) continue;
    hp_text_add(&text, " %s=%llu", all[i].key, (unsigned long long)value);
    any = true;
  }
  if (any) add_line(out, line, text.length);
}

static uint64_t standard_error(double variance) { return (uint64_t)(hp_math_sqrt(variance) + 0.5); }

static void add_errors(struct lines *out, const struct hp_reading *reading, const struct hp_live_moments *m) {
  char line[LINE_BYTES];
  struct hp_text text;
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text,
              "heapprof.totals alloc_objects=%lld alloc_objects_se=%llu alloc_bytes=%lld alloc_bytes_se=%llu "
              "inuse_objects=%lld inuse_objects_se=%llu inuse_bytes=%lld inuse_bytes_se=%llu",
              (long long)reading->totals[HP_ALLOC_OBJECTS], (unsigned long long)standard_error(m->alloc_objects_variance),
              (long long)reading->totals[HP_ALLOC_BYTES], (unsigned long long)standard_error(m->alloc_bytes_variance),
              (long long)reading->totals[HP_INUSE_OBJECTS], (unsigned long long)standard_error(m->inuse_objects_variance),
              (long long)reading->totals[HP_INUSE_BYTES], (unsigned long long)standard_error(m->inuse_bytes_variance));
  add_line(out, line, text.length);
}

static void add_reconciliation(struct lines *out, const struct hp_reading *reading, const struct hp_live_moments *m) {
  char line[LINE_BYTES];
  struct hp_text text;
  hp_text_init(&text, line, sizeof line);
  hp_text_add(&text, "heapprof.reconcile inuse_bytes=%lld inuse_se=%llu profiler_bytes=%zu",
              (long long)reading->totals[HP_INUSE_BYTES], (unsigned long long)standard_error(m->inuse_bytes_variance),
              hp_memory_used());
  struct resident r;
  if (read_resident(&r)) {
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
                (unsigned long long)f.age_seconds);
  }
  add_line(out, line, text.length);
}

size_t hp_comments_make(const struct hp_reading *reading, struct hp_arena *arena, const char *const **out_lines) {
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
  add_errors(&out, reading, &moments);
  add_reconciliation(&out, reading, &moments);
  add_losses(&out);
  *out_lines = out.lines;
  return out.count;
}
