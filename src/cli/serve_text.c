/* SPDX-License-Identifier: MIT
 * serve_text.c - see serve_text.h. Names come from a file that the process wrote: nothing of it reaches a line unchecked.
 */
#include "serve_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "text_output.h"

#define METRICS_MAX 256

const char hp_serve_index[] =
    "<!doctype html>\n<meta charset=\"utf-8\">\n<title>/debug/pprof/</title>\n"
    "<h1>/debug/pprof/</h1>\n"
    "<ul>\n"
    "<li><a href=\"heap?debug=1\">heap</a>: memory in use, and allocated since the start, by stack</li>\n"
    "<li><a href=\"allocs?debug=1\">allocs</a>: the same, allocations first</li>\n"
    "<li><a href=\"/metrics\">metrics</a>: sums for Prometheus</li>\n"
    "</ul>\n"
    "<p>Without <code>debug=1</code>: a gzipped pprof profile. With <code>seconds=N</code>: the change over N seconds.</p>\n"
    "<pre>go tool pprof http://HOST:PORT/debug/pprof/heap\n"
    "go tool pprof http://HOST:PORT/debug/pprof/allocs?seconds=30\n"
    "curl -o app.pb.gz http://HOST:PORT/debug/pprof/heap &amp;&amp; heapprof view -o app.html app.pb.gz</pre>\n";

struct columns {
  uint32_t alloc_objects, alloc_bytes, inuse_objects, inuse_bytes; /* HP_NONE: not there */
};

static uint32_t column(const struct hp_profile *profile, const char *name) { return hp_profile_type_find(profile, name); }

static struct columns find_columns(const struct hp_profile *profile) {
  return (struct columns){column(profile, "alloc_objects"), column(profile, "alloc_space"), column(profile, "inuse_objects"),
                          column(profile, "inuse_space")};
}

static int64_t value_of(const struct hp_profile *profile, size_t sample, uint32_t type) {
  return type == HP_NONE ? 0 : hp_profile_value(profile, sample, type);
}

static int64_t sum_of(const struct hp_profile *profile, uint32_t type) {
  int64_t sum = 0;
  for (size_t i = 0; i < profile->sample_count; i++)
    if (__builtin_add_overflow(sum, value_of(profile, i, type), &sum)) return INT64_MAX;
  return sum;
}

static void write_location(FILE *out, const struct hp_profile *profile, const struct hp_location *location) {
  if (location->line_count == 0) fprintf(out, "#\t0x%" PRIx64 "\n", location->address);
  for (uint32_t i = location->first_line; i < location->first_line + location->line_count; i++) {
    const struct hp_line *line = &profile->lines[i];
    fprintf(out, "#\t0x%" PRIx64 "\t", location->address);
    if (line->function != HP_NONE) {
      const struct hp_function *function = &profile->functions[line->function];
      hp_text_print(out, hp_profile_text(profile, function->name));
      fputc('\t', out);
      hp_text_print(out, hp_profile_text(profile, function->file));
      if (line->line > 0) fprintf(out, ":%" PRId64, line->line);
    }
    fputc('\n', out);
  }
}

static void write_stack(FILE *out, const struct hp_profile *profile, const struct columns *columns, size_t index) {
  const struct hp_sample *sample = &profile->samples[index];
  fprintf(out, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "] @", value_of(profile, index, columns->inuse_objects),
          value_of(profile, index, columns->inuse_bytes), value_of(profile, index, columns->alloc_objects),
          value_of(profile, index, columns->alloc_bytes));
  for (uint32_t i = 0; i < sample->location_count;
       i++) /* readers of this form take a return address: one more than a call's */
    fprintf(out, " 0x%" PRIx64, profile->locations[profile->stack_locations[sample->first_location + i]].address + 1);
  fputc('\n', out);
  for (uint32_t i = 0; i < sample->location_count; i++)
    write_location(out, profile, &profile->locations[profile->stack_locations[sample->first_location + i]]);
  fputc('\n', out);
}

struct order {
  int64_t inuse, alloc;
  size_t index;
};

static int compare_order(const void *a, const void *b) {
  const struct order *x = a, *y = b;
  if (x->inuse != y->inuse) return x->inuse > y->inuse ? -1 : 1;
  if (x->alloc != y->alloc) return x->alloc > y->alloc ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

void hp_serve_text_write(FILE *out, const struct hp_profile *profile) {
  struct columns columns = find_columns(profile);
  struct order *order = hp_alloc(profile->sample_count * sizeof *order);
  for (size_t i = 0; i < profile->sample_count; i++)
    order[i] = (struct order){value_of(profile, i, columns.inuse_bytes), value_of(profile, i, columns.alloc_bytes), i};
  if (profile->sample_count != 0) qsort(order, profile->sample_count, sizeof *order, compare_order);
  fprintf(out, "heap profile: %" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "] @ heapprofile\n",
          sum_of(profile, columns.inuse_objects), sum_of(profile, columns.inuse_bytes),
          sum_of(profile, columns.alloc_objects), sum_of(profile, columns.alloc_bytes));
  for (size_t i = 0; i < profile->sample_count; i++) write_stack(out, profile, &columns, order[i].index);
  free(order);
  for (size_t i = 0; i < profile->comment_count; i++) {
    fputs("# ", out);
    hp_text_print(out, hp_profile_text(profile, profile->comments[i]));
    fputc('\n', out);
  }
  fputs("\nMAPPED_LIBRARIES:\n", out);
  for (size_t i = 0; i < profile->mapping_count; i++) {
    const struct hp_mapping *mapping = &profile->mappings[i];
    fprintf(out, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ", mapping->start, mapping->limit, mapping->offset);
    hp_text_print(out, hp_profile_text(profile, mapping->file));
    fputc('\n', out);
  }
}

/* Which metrics have been written: a name must not come twice. */
struct metrics {
  FILE *out;
  char *names[METRICS_MAX];
  size_t count;
};

static bool is_new(struct metrics *metrics, const char *name) {
  for (size_t i = 0; i < metrics->count; i++)
    if (strcmp(metrics->names[i], name) == 0) return false;
  if (metrics->count == METRICS_MAX) return false;
  metrics->names[metrics->count++] = hp_strdup(name);
  return true;
}

static void write_sum(const struct hp_profile *profile, FILE *out, uint32_t type, const char *name, const char *kind,
                      const char *help) {
  if (type == HP_NONE) return;
  fprintf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRId64 "\n", name, help, name, kind, name, sum_of(profile, type));
}

/* `text` up to `length` as the part of a metric's name: letters, digits and _; false if there is anything else in it. */
static bool is_name(const char *text, size_t length) {
  if (length == 0 || length > 40) return false;
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

static void write_figure(struct metrics *metrics, const char *topic, size_t topic_length, const char *key, size_t key_length,
                         double value) {
  char name[128];
  bool is_lost = topic_length == 4 && memcmp(topic, "lost", 4) == 0;
  snprintf(name, sizeof name, "heapprof_%.*s_%.*s", (int)topic_length, topic, (int)key_length, key);
  if (!is_new(metrics, name)) return;
  if (is_lost) {
    if (is_new(metrics, "heapprof_lost_total"))
      fputs("# HELP heapprof_lost_total Samples lost or cut, by cause.\n# TYPE heapprof_lost_total counter\n", metrics->out);
    fprintf(metrics->out, "heapprof_lost_total{cause=\"%.*s\"} %.17g\n", (int)key_length, key, value);
  } else {
    fprintf(metrics->out, "# TYPE %s gauge\n%s %.17g\n", name, name, value);
  }
}

/* "heapprof.reconcile inuse_bytes=1 allocator=glibc": numbers only, the rest is passed over. */
static void write_comment(struct metrics *metrics, const char *comment) {
  static const char prefix[] = "heapprof.";
  if (strncmp(comment, prefix, sizeof prefix - 1) != 0) return;
  const char *topic = comment + sizeof prefix - 1, *at = topic + strcspn(topic, " \t");
  size_t topic_length = (size_t)(at - topic);
  if (!is_name(topic, topic_length)) return;
  while (*at != '\0') {
    at += strspn(at, " \t");
    size_t word = strcspn(at, " \t"), key_length = strcspn(at, "= \t");
    if (key_length < word && is_name(at, key_length)) {
      char *end;
      double value = strtod(at + key_length + 1, &end);
      if (end == at + word && end != at + key_length + 1 && value - value == 0)
        write_figure(metrics, topic, topic_length, at, key_length, value);
    }
    at += word;
  }
}

void hp_serve_metrics_write(FILE *out, const struct hp_profile *profile) {
  struct columns columns = find_columns(profile);
  struct metrics metrics = {.out = out};
  write_sum(profile, out, columns.inuse_bytes, "heapprof_inuse_bytes", "gauge", "Bytes in live blocks, estimated.");
  write_sum(profile, out, columns.inuse_objects, "heapprof_inuse_objects", "gauge", "Live blocks, estimated.");
  write_sum(profile, out, columns.alloc_bytes, "heapprof_alloc_bytes_total", "counter", "Bytes allocated, estimated.");
  write_sum(profile, out, columns.alloc_objects, "heapprof_alloc_objects_total", "counter", "Blocks allocated, estimated.");
  fprintf(out,
          "# HELP heapprof_sample_rate_bytes Mean bytes between two samples.\n# TYPE heapprof_sample_rate_bytes gauge\n"
          "heapprof_sample_rate_bytes %" PRId64 "\n",
          profile->period);
  fprintf(out, "# HELP heapprof_stacks Rows of the profile.\n# TYPE heapprof_stacks gauge\nheapprof_stacks %zu\n",
          profile->sample_count);
  fprintf(
      out,
      "# HELP heapprof_dump_timestamp_seconds When the profile was taken.\n# TYPE heapprof_dump_timestamp_seconds gauge\n"
      "heapprof_dump_timestamp_seconds %.3f\n",
      (double)profile->time_nanos / 1e9);
  for (size_t i = 0; i < profile->comment_count; i++)
    write_comment(&metrics, hp_profile_text(profile, profile->comments[i]));
  for (size_t i = 0; i < metrics.count; i++) free(metrics.names[i]);
}
