/* SPDX-License-Identifier: MIT
 * books.c - see books.h.
 *
 * Kept between dumps, by stack id: the alloc columns of the last delta, and what a reset takes off. Pages of 512 entries,
 * made when first needed, read as zero where there is none.
 *
 * Ages: with the label, the live records are walked before the counters are read, so that a row's blocks are all in its
 * counters. The live blocks of a stack in one age bucket make a row whose alloc equals its in-use; what the stack allocated
 * besides (and what was freed between the two readings) makes one more row, without the label. Sums stay. */
#include "books.h"

#include <errno.h>
#include <string.h>

#include "labels.h"
#include "live_table.h"
#include "modules.h"
#include "peak_tracker.h"
#include "recorder.h"
#include "stack_table.h"
#include "sys.h"

enum { PAGE_ENTRIES = 512, PAGES = 32768 };

struct kept {
  int64_t delta[2];      /* alloc objects and bytes in the last delta's reading (raw, before the reset's base) */
  int64_t reset_base[2]; /* freed when reset: taken off both alloc columns */
};

struct hp_aged_row {
  uint32_t stack_id;
  uint32_t bucket;
  int64_t objects, bytes; /* fixed point while summing, rounded afterwards */
};

static double reset_variances[2]; /* of what a reset took off: alloc objects and bytes */
static struct hp_arena kept_arena;
static struct kept *kept_pages[PAGES];

static const struct kept *kept_of(uint32_t id) {
  static const struct kept none;
  const struct kept *page = id / PAGE_ENTRIES < PAGES ? kept_pages[id / PAGE_ENTRIES] : NULL;
  return page == NULL ? &none : &page[id % PAGE_ENTRIES];
}

static struct kept *kept_for_writing(uint32_t id) {
  if (id / PAGE_ENTRIES >= PAGES) return NULL;
  struct kept **page = &kept_pages[id / PAGE_ENTRIES];
  if (*page == NULL) *page = hp_arena_alloc(&kept_arena, PAGE_ENTRIES * sizeof **page);
  return *page == NULL ? NULL : &(*page)[id % PAGE_ENTRIES];
}

/* ---- reading ---- */
static int64_t round_fixed(uint64_t value, unsigned bits) {
  uint64_t half = (uint64_t)1 << (bits - 1);
  uint64_t rounded = (value >> bits) + ((value & ((half << 1) - 1)) >= half);
  return rounded > INT64_MAX ? INT64_MAX : (int64_t)rounded;
}

static void round_values(const struct hp_stack_counts *v, int64_t values[HP_VALUES]) {
  uint64_t objects = v->alloc_objects < v->freed_objects ? 0 : v->alloc_objects - v->freed_objects;
  uint64_t bytes = v->alloc_bytes < v->freed_bytes ? 0 : v->alloc_bytes - v->freed_bytes;
  values[HP_ALLOC_OBJECTS] = round_fixed(v->alloc_objects, HP_OBJECT_FRACTION_BITS);
  values[HP_ALLOC_BYTES] = round_fixed(v->alloc_bytes, HP_BYTE_FRACTION_BITS);
  values[HP_INUSE_OBJECTS] = round_fixed(objects, HP_OBJECT_FRACTION_BITS);
  values[HP_INUSE_BYTES] = round_fixed(bytes, HP_BYTE_FRACTION_BITS);
}

static void read_stack(const struct hp_stack *s, int64_t values[HP_VALUES]) {
  struct hp_stack_counts v;
  hp_stack_load(s, &v);
  round_values(&v, values);
}

static int64_t add_saturated(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* ---- ages ---- */
struct age_walk {
  struct {
    int64_t objects, bytes;
  } (*sums)[HP_LABEL_AGES]; /* [stack id] */
  uint32_t count;
  uint32_t now;
};

static void visit_age(void *context, const struct hp_live_record *r) {
  struct age_walk *walk = context;
  if (r->stack_id >= walk->count) return; /* a stack newer than the walk: in the row without a label */
  uint32_t seconds = walk->now > r->time_seconds ? walk->now - r->time_seconds : 0;
  uint32_t b = hp_labels_age_bucket(seconds);
  walk->sums[r->stack_id][b].objects += (int64_t)hp_fixed_objects(r->weight);
  walk->sums[r->stack_id][b].bytes += (int64_t)hp_fixed_bytes(r->weight, hp_live_record_size(r));
}

/* The buckets in which there is something, as rows. */
static int keep_ages(struct hp_reading *out, const struct age_walk *walk, struct hp_arena *arena) {
  size_t n = 0;
  for (uint32_t id = 0; id < walk->count; id++) {
    for (uint32_t b = 0; b < HP_LABEL_AGES; b++) n += walk->sums[id][b].objects != 0;
  }
  out->aged = hp_arena_alloc(arena, (n + 1) * sizeof out->aged[0]);
  if (out->aged == NULL) return -ENOMEM;
  for (uint32_t id = 0; id < walk->count; id++) {
    for (uint32_t b = 0; b < HP_LABEL_AGES; b++) {
      if (walk->sums[id][b].objects == 0) continue;
      out->aged[out->aged_count++] =
          (struct hp_aged_row){id, b, round_fixed((uint64_t)walk->sums[id][b].objects, HP_OBJECT_FRACTION_BITS),
                               round_fixed((uint64_t)walk->sums[id][b].bytes, HP_BYTE_FRACTION_BITS)};
    }
  }
  return 0;
}

static int read_ages(struct hp_reading *out, struct hp_arena *arena) {
  struct age_walk walk = {.count = hp_stack_table_count(), .now = hp_labels_now_seconds()};
  struct hp_arena sums = {0}; /* larger than all that comes of it */
  walk.sums = hp_arena_alloc(&sums, walk.count * sizeof walk.sums[0]);
  if (walk.sums == NULL) return -ENOMEM;
  hp_live_table_walk(visit_age, &walk);
  int result = keep_ages(out, &walk, arena);
  hp_arena_reset(&sums);
  return result;
}

/* ---- both ---- */
static void add_up(struct hp_reading *out) {
  for (uint32_t id = 0; id < out->count; id++) {
    for (unsigned v = 0; v < HP_VALUES; v++) out->totals[v] = add_saturated(out->totals[v], out->values[id][v]);
  }
}

int hp_books_read(struct hp_reading *out, struct hp_arena *arena) {
  memset(out, 0, sizeof *out);
  if ((hp_recorder_labels() & HP_LABEL_AGE) != 0 && read_ages(out, arena) != 0) return -ENOMEM;
  out->count = hp_stack_table_count();
  out->values = hp_arena_alloc(arena, out->count * sizeof out->values[0]);
  if (out->values == NULL) return -ENOMEM;
  for (uint32_t id = 0; id < out->count; id++) read_stack(hp_stack_table_get(id), out->values[id]);
  add_up(out);
  return 0;
}

int hp_books_read_peak(struct hp_reading *out, struct hp_arena *arena, struct hp_moment *moment) {
  memset(out, 0, sizeof *out);
  hp_peak_tracker_lock();
  out->count = hp_stack_table_count();
  out->values = hp_arena_alloc(arena, out->count * sizeof out->values[0]);
  for (uint32_t id = 0; out->values != NULL && id < out->count; id++) {
    struct hp_stack_counts v;
    hp_peak_tracker_get(hp_stack_table_get(id), &v);
    round_values(&v, out->values[id]);
  }
  hp_peak_tracker_is_past(moment);
  hp_peak_tracker_unlock();
  if (out->values == NULL) return -ENOMEM;
  add_up(out);
  return 0;
}

/* ---- rows ---- */
static enum hp_row_stack row_stack(const struct hp_stack *s) {
  switch (s->kind) {
    case HP_STACK_TRUNCATED: return HP_ROW_TRUNCATED;
    case HP_STACK_NONE: return HP_ROW_NO_STACK;
    case HP_STACK_TABLE_FULL: return HP_ROW_STACK_TABLE_FULL;
    default: return HP_ROW_WHOLE;
  }
}

/* Labels of a row: up to size, thread, age. NULL with *out_count 0 when there is none or no memory. */
static const struct hp_label *make_labels(const struct hp_stack *s, const char *age, struct hp_arena *arena,
                                          uint8_t *out_count) {
  *out_count = 0;
  uint64_t size_key = s->label >> 16;
  unsigned set = hp_recorder_labels();
  bool has_thread = (set & HP_LABEL_THREAD) != 0 && s->id >= HP_STACK_ID_FIRST;
  if (size_key == 0 && !has_thread && age == NULL) return NULL;
  size_t count = (size_key != 0) + has_thread + (age != NULL);
  struct hp_label *labels = hp_arena_alloc(arena, count * sizeof *labels);
  if (labels == NULL) return NULL;
  uint8_t n = 0;
  if (size_key != 0) labels[n++] = (struct hp_label){.key = "bytes", .num = (int64_t)(size_key - 1), .unit = "bytes"};
  if (has_thread) {
    labels[n++] = (struct hp_label){.key = "thread", .str = hp_labels_thread_name((uint16_t)(s->label & 0xFFFF))};
  }
  if (age != NULL) labels[n++] = (struct hp_label){.key = "age", .str = age};
  *out_count = n;
  return labels;
}

static void set_values(struct hp_row *row, const int64_t values[HP_VALUES], enum hp_profile_kind kind) {
  memcpy(row->values, values, sizeof row->values);
  if (kind == HP_KIND_HEAP) row->values[HP_ALLOC_OBJECTS] = row->values[HP_ALLOC_BYTES] = 0;
}

/* The columns of one stack as this kind shows them. */
static void stack_values(const struct hp_reading *reading, uint32_t id, enum hp_profile_kind kind, int64_t v[HP_VALUES]) {
  const struct kept *k = kept_of(id);
  memcpy(v, reading->values[id], HP_VALUES * sizeof v[0]);
  for (unsigned i = 0; i < 2; i++) {
    v[i] -= kind == HP_KIND_DELTA ? k->delta[i] : k->reset_base[i];
    if (v[i] < 0) v[i] = 0;
  }
  if (kind == HP_KIND_DELTA) {
    v[HP_INUSE_OBJECTS] = v[HP_INUSE_BYTES] = 0;
    return;
  }
  for (unsigned i = 0; i < 2; i++) { /* rounding, and the moments between four loads, never make in-use exceed alloc */
    if (v[i + 2] <= v[i]) continue;
    if (kind == HP_KIND_PEAK) {
      v[i] = v[i + 2]; /* the peak was before the reset: what was in use then counts as allocated */
    } else {
      v[i + 2] = v[i];
    }
  }
  if (v[HP_INUSE_OBJECTS] == 0) v[HP_INUSE_BYTES] = 0;
}

void hp_books_sums(const struct hp_reading *reading, bool is_peak, struct hp_books_sums *out) {
  *out = (struct hp_books_sums){0};
  for (uint32_t id = 0; id < reading->count; id++) {
    int64_t v[HP_VALUES];
    stack_values(reading, id, is_peak ? HP_KIND_PEAK : HP_KIND_FULL, v);
    for (unsigned i = 0; i < HP_VALUES; i++) out->values[i] = add_saturated(out->values[i], v[i]);
  }
  struct hp_live_moments m;
  hp_live_table_moments(&m);
  const double variances[HP_VALUES] = {m.alloc_objects_variance - reset_variances[0],
                                       m.alloc_bytes_variance - reset_variances[1], m.inuse_objects_variance,
                                       m.inuse_bytes_variance};
  for (unsigned i = 0; i < HP_VALUES; i++) out->variances[i] = variances[i] > 0 ? variances[i] : 0;
}

/* What is loaded, as it was at the last look. */
struct loaded {
  struct hp_arena *arena;
  const struct hp_module_set *modules;
  uint32_t sequence;
  unsigned waits; /* for a change to end */
};

/* The thread that makes the change may have lost its processor in the middle; or it is this one, interrupted by a handler that
 * ends the process: then it never ends, and false is the answer. */
static bool wait_for_change(struct loaded *loaded) {
  enum { SPINS = 64, WAITS_MAX = SPINS + 100 };
  if (loaded->waits == WAITS_MAX) return false;
  if (++loaded->waits > SPINS) hp_sys_sleep_ms(1);
  return true;
}

/* A closed stack says itself whose it is; an open one belongs to what is loaded, if that is what was loaded when it was seen to
 * be open. That settles unless libraries come and go faster than this loops. */
static const struct hp_module_set *modules_of(const struct hp_stack *s, struct loaded *loaded) {
  enum { TRIES = 200 };
  for (int i = 0; i < TRIES; i++) {
    uint32_t set = hp_load_acquire(&s->closed_set);
    if (set != 0) return hp_module_set_get(set);
    bool is_settled = loaded->sequence % 2 == 0;
    if (is_settled && hp_modules_sequence() == loaded->sequence) break;
    if (!is_settled && !wait_for_change(loaded)) break;
    const struct hp_module_set *fresh = hp_modules_loaded(loaded->arena, &loaded->sequence);
    if (fresh != NULL) loaded->modules = fresh;
  }
  return loaded->modules;
}

static struct hp_row base_row(const struct hp_stack *s, struct loaded *loaded) {
  return (struct hp_row){.pcs = s->pcs, .depth = s->depth, .modules = modules_of(s, loaded), .stack = (uint8_t)row_stack(s)};
}

static bool is_zero(const int64_t v[HP_VALUES]) { return (v[0] | v[1] | v[2] | v[3]) == 0; }

/* The aged rows of one stack, [first, last), taken out of v; each becomes a row of its own. */
static size_t add_aged_rows(struct hp_row *rows, const struct hp_reading *reading, size_t first, size_t last,
                            const struct hp_stack *s, int64_t v[HP_VALUES], enum hp_profile_kind kind,
                            struct loaded *loaded) {
  size_t n = 0;
  for (size_t i = first; i < last; i++) {
    int64_t objects = reading->aged[i].objects, bytes = reading->aged[i].bytes;
    if (objects > v[HP_INUSE_OBJECTS]) objects = v[HP_INUSE_OBJECTS];
    if (bytes > v[HP_INUSE_BYTES]) bytes = v[HP_INUSE_BYTES];
    if (objects == 0) continue;
    if (objects == v[HP_INUSE_OBJECTS]) bytes = v[HP_INUSE_BYTES]; /* the last: parts are rounded, their sum was too */
    int64_t aged[HP_VALUES] = {objects, bytes, objects, bytes};
    for (unsigned k = 0; k < HP_VALUES; k++) v[k] -= aged[k];
    struct hp_row *row = &rows[n++];
    *row = base_row(s, loaded);
    row->labels = make_labels(s, hp_labels_age_name(reading->aged[i].bucket), loaded->arena, &row->label_count);
    set_values(row, aged, kind);
  }
  return n;
}

/* Room to remember this reading, before the file is written: otherwise the next delta would begin at two moments. */
static bool has_room_for_delta(const struct hp_reading *reading) {
  for (uint32_t id = 0; id < reading->count; id++) {
    if (reading->values[id][HP_ALLOC_OBJECTS] != 0 && kept_for_writing(id) == NULL) return false;
  }
  return true;
}

int hp_books_rows(const struct hp_reading *reading, enum hp_profile_kind kind, struct hp_arena *arena,
                  const struct hp_row **out_rows, size_t *out_count) {
  struct hp_row *rows = hp_arena_alloc(arena, (reading->count + reading->aged_count + 1) * sizeof *rows);
  if (rows == NULL) return -ENOMEM;
  if (kind == HP_KIND_DELTA && !has_room_for_delta(reading)) return -ENOMEM;
  bool with_ages = reading->aged != NULL && (kind == HP_KIND_FULL || kind == HP_KIND_HEAP);
  struct loaded loaded = {.arena = arena};
  loaded.modules = hp_modules_loaded(arena, &loaded.sequence);
  if (loaded.modules == NULL) return -ENOMEM;
  size_t n = 0, aged = 0;
  for (uint32_t id = 0; id < reading->count; id++) {
    const struct hp_stack *s = hp_stack_table_get(id);
    int64_t v[HP_VALUES];
    stack_values(reading, id, kind, v);
    if (with_ages) {
      size_t first = aged;
      while (aged < reading->aged_count && reading->aged[aged].stack_id == id) aged++;
      n += add_aged_rows(&rows[n], reading, first, aged, s, v, kind, &loaded);
    }
    if (kind == HP_KIND_HEAP) v[HP_ALLOC_OBJECTS] = v[HP_ALLOC_BYTES] = 0;
    if (is_zero(v)) continue;
    struct hp_row row = base_row(s, &loaded);
    memcpy(row.values, v, sizeof row.values);
    row.labels = make_labels(s, NULL, arena, &row.label_count);
    rows[n++] = row;
  }
  *out_rows = rows;
  *out_count = n;
  return 0;
}

/* ---- what is kept ---- */
static int start_delta(uint32_t id, const int64_t v[HP_VALUES]) {
  if (v[HP_ALLOC_OBJECTS] == 0) return 0;
  struct kept *k = kept_for_writing(id);
  if (k == NULL) return -ENOMEM;
  k->delta[0] = v[HP_ALLOC_OBJECTS];
  k->delta[1] = v[HP_ALLOC_BYTES];
  return 0;
}

void hp_books_delta_done(const struct hp_reading *reading) {
  for (uint32_t id = 0; id < reading->count; id++) start_delta(id, reading->values[id]);
}

static int for_each_stack(int (*apply)(uint32_t id, const int64_t values[HP_VALUES])) {
  uint32_t count = hp_stack_table_count();
  for (uint32_t id = 0; id < count; id++) {
    int64_t v[HP_VALUES];
    read_stack(hp_stack_table_get(id), v);
    int result = apply(id, v);
    if (result != 0) return result;
  }
  return 0;
}

int hp_books_delta_start(void) { return for_each_stack(start_delta); }

static int reset_one(uint32_t id, const int64_t v[HP_VALUES]) {
  if (v[HP_ALLOC_OBJECTS] == 0) return 0;
  struct kept *k = kept_for_writing(id);
  if (k == NULL) return -ENOMEM;
  k->reset_base[0] = v[HP_ALLOC_OBJECTS] - v[HP_INUSE_OBJECTS];
  k->reset_base[1] = v[HP_ALLOC_BYTES] - v[HP_INUSE_BYTES];
  return 0;
}

static int make_room(uint32_t id, const int64_t v[HP_VALUES]) {
  return v[HP_ALLOC_OBJECTS] == 0 || kept_for_writing(id) != NULL ? 0 : -ENOMEM;
}

/* All or nothing: a profile of which half the stacks count from now would show neither moment. */
int hp_books_reset(void) {
  int result = for_each_stack(make_room);
  if (result == 0) result = for_each_stack(reset_one);
  if (result != 0) return result;
  struct hp_live_moments m;
  hp_live_table_moments(&m);
  reset_variances[0] = m.alloc_objects_variance - m.inuse_objects_variance;
  reset_variances[1] = m.alloc_bytes_variance - m.inuse_bytes_variance;
  return 0;
}
