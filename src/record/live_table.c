/* SPDX-License-Identifier: MIT
 * live_table.c - see live_table.h.
 *
 *   hash of the address:  | shard 6 bits | chunk of the index, from the bits below; filter index, from the top |
 *
 * A shard: slots for records in pages of 32, a free list through the slots that are not in use, and an index from hash to
 * number (live_index.h). */
#include "live_table.h"

#include <string.h>

#include "budget.h"
#include "heap.h"
#include "hot.h"
#include "live_filter.h"
#include "live_index.h"
#include "lock.h"
#include "thread_state.h"

enum {
  SHARD_BITS = 6,
  SHARDS = 1 << SHARD_BITS,
  PAGE_BITS = 5,
  PAGE_SLOTS = 1 << PAGE_BITS,
};

/* A record as it is kept, or a place for one: then weight is 0 and address the next such place's number + 1, or 0. */
struct slot {
  uintptr_t address;
  uint64_t size_thread;
  float weight;
  uint32_t stack_id;
};

struct page {
  struct slot slots[PAGE_SLOTS];
  uint32_t seconds[PAGE_SLOTS]; /* written and read only once there was a time */
};

struct shard {
  struct hp_lock lock;
  uint32_t count;       /* atomic for hp_live_table_count */
  uint32_t fit_checked; /* the filter's size is no question up to this count */
  uint32_t free_list;   /* number + 1, or 0 */
  uint32_t page_count;
  uint32_t page_capacity;
  uint32_t compact_failed; /* with this many records there was no memory to compact: not tried again until half are left */
  struct hp_live_index index;
  struct page **pages;
  struct hp_live_moments moments;
} __attribute__((aligned(HP_CACHE_LINE)));

static struct shard shards[SHARDS];
static bool is_used;  /* atomic: something was inserted */
static bool has_time; /* atomic: some record has a time (label `age`) */

static uint64_t test_limit;

static inline uint64_t hash_of(uintptr_t address) { return hp_address_hash((const void *)address); }
static inline struct shard *shard_of(uint64_t hash) { return &shards[hash >> (64 - SHARD_BITS)]; }
static inline struct page *page_of(const struct shard *s, uint32_t number) { return s->pages[number >> PAGE_BITS]; }
static inline struct slot *slot_at(const struct shard *s, uint32_t number) {
  return &page_of(s, number)->slots[number & (PAGE_SLOTS - 1)];
}

static void lock_shard(struct shard *s) {
  if (HP_LIKELY(!hp_thread.holds_all_locks)) hp_lock_acquire(&s->lock);
}
static void unlock_shard(struct shard *s) {
  if (HP_LIKELY(!hp_thread.holds_all_locks)) hp_lock_release(&s->lock);
}
void hp_live_table_lock_all(void) {
  for (unsigned i = 0; i < SHARDS; i++) hp_lock_acquire(&shards[i].lock);
}
void hp_live_table_unlock_all(void) {
  for (unsigned i = 0; i < SHARDS; i++) hp_lock_release(&shards[i].lock);
}

uint64_t hp_live_table_count(void) {
  if (!hp_load_relaxed(&is_used)) return 0;
  uint64_t sum = 0;
  for (unsigned i = 0; i < SHARDS; i++) sum += hp_load_relaxed(&shards[i].count);
  return sum;
}

/* One sample of weight w = 1/p adds s^2 (1-p)/p^2 = s^2 w (w-1) to the variance of a sum of bytes (docs/accuracy.md). */
static void add_moments(double *objects, double *bytes, float weight, uint64_t size_bytes, double sign) {
  if (weight == 1.0f) return;
  double variance = sign * (double)weight * ((double)weight - 1.0);
  double size = (double)size_bytes;
  *objects += variance;
  *bytes += variance * size * size;
}

void hp_live_table_moments(struct hp_live_moments *out) {
  memset(out, 0, sizeof *out);
  if (!hp_load_relaxed(&is_used)) return; /* do not even touch the shards' pages */
  for (unsigned i = 0; i < SHARDS; i++) { /* torn by a sample or two at worst: an error bar, not a sum */
    const struct hp_live_moments *m = &shards[i].moments;
    out->samples += m->samples;
    out->alloc_objects_variance += m->alloc_objects_variance;
    out->alloc_bytes_variance += m->alloc_bytes_variance;
    out->inuse_objects_variance += m->inuse_objects_variance;
    out->inuse_bytes_variance += m->inuse_bytes_variance;
  }
  if (out->inuse_objects_variance < 0) out->inuse_objects_variance = 0;
  if (out->inuse_bytes_variance < 0) out->inuse_bytes_variance = 0;
}

/* ---- the records of all shards, which are locked ---- */
static void for_each_slot(const struct shard *s, void (*visit)(void *context, const struct slot *slot, uint32_t number),
                          void *context) {
  for (uint32_t number = 0; number < s->page_count << PAGE_BITS; number++) {
    const struct slot *slot = slot_at(s, number);
    if (slot->weight != 0) visit(context, slot, number);
  }
}

static void count_up(void *unused, const struct slot *slot, uint32_t number) {
  (void)unused;
  (void)number;
  hp_live_filter_count_up(hash_of(slot->address));
}

static void count_up_all(void) {
  for (unsigned i = 0; i < SHARDS; i++) {
    shards[i].fit_checked = 0;
    for_each_slot(&shards[i], count_up, NULL);
  }
}

/* No lock held. Makes the filter fit the number of records. */
static HP_COLD void fit_filter(void) {
  if (!hp_thread.holds_all_locks) hp_live_table_lock_all();
  hp_live_filter_fit(hp_live_table_count(), count_up_all);
  if (!hp_thread.holds_all_locks) hp_live_table_unlock_all();
}

/* The locks are taken only if there is something to do: whoever waits for one while we have lost the CPU waits long. */
void hp_live_table_reclaim(uint64_t now_seconds) {
  if (hp_thread.holds_all_locks) return; /* the process is ending inside the table */
  if (!hp_load_relaxed(&is_used)) return;
  if (hp_live_filter_retired() != 0) {
    struct hp_live_retired due[HP_LIVE_RETIRED_MAX];
    hp_live_table_lock_all();
    unsigned count = hp_live_filter_take_retired(now_seconds, due);
    hp_live_table_unlock_all();
    hp_live_filter_give_back(due, count);
  }
  /* The last blocks to go compact no shard, and the filter stayed as it was for many more. Once in ten seconds: a program that
   * grows and shrinks all the time would retire more than there is room for. */
  if (hp_live_filter_retired() == 0 && hp_live_filter_is_misfit(hp_live_table_count())) fit_filter();
}

/* ---- a shard, under its lock ---- */
static void add_to_index(void *index, const struct slot *slot, uint32_t number) {
  hp_live_index_add(index, hash_of(slot->address), number);
}

/* Atomic for hp_live_table_expect(). */
static void set_index(struct shard *s, const struct hp_live_index *fresh) {
  hp_store_relaxed(&s->index.chunks, fresh->chunks);
  hp_store_relaxed(&s->index.chunk_count, fresh->chunk_count);
}

static bool grow_index(struct shard *s) {
  struct hp_live_index fresh;
  uint32_t comfort = hp_live_index_comfort(&s->index);
  if (!hp_live_index_make(&fresh, comfort + comfort / 2 + 1)) return false;
  for_each_slot(s, add_to_index, &fresh);
  hp_live_index_free(&s->index);
  set_index(s, &fresh);
  return true;
}

static bool add_page(struct shard *s) {
  if (s->page_count >= HP_LIVE_NUMBER_MAX >> PAGE_BITS) return false;
  if (s->page_count == s->page_capacity) {
    uint32_t capacity = s->page_capacity == 0 ? 8 : s->page_capacity * 2;
    struct page **fresh = hp_heap_alloc(capacity * sizeof *fresh);
    if (fresh == NULL) return false;
    if (s->page_count != 0) memcpy(fresh, s->pages, s->page_count * sizeof *fresh);
    hp_heap_free(s->pages);
    s->pages = fresh;
    s->page_capacity = capacity;
  }
  struct page *page = hp_heap_alloc(sizeof *page);
  if (page == NULL) return false;
  s->pages[s->page_count] = page;
  uint32_t base = s->page_count << PAGE_BITS;
  s->page_count++;
  memset(page->seconds, 0, sizeof page->seconds);
  for (uint32_t i = PAGE_SLOTS; i-- > 0;) {
    page->slots[i].weight = 0;
    page->slots[i].address = s->free_list;
    s->free_list = base + i + 1;
  }
  return true;
}

/* Room in the index and a free place: its number + 1, or 0. A failing growth of the index makes longer searches, up to a point.
 */
static uint32_t take_slot(struct shard *s) {
  if (s->count >= hp_live_index_comfort(&s->index) && !grow_index(s) && s->count >= hp_live_index_room(&s->index)) return 0;
  if (s->free_list == 0 && (hp_memory_is_full(HP_MEMORY_LIVE) || !add_page(s))) return 0;
  uint32_t number = s->free_list;
  s->free_list = (uint32_t)slot_at(s, number - 1)->address;
  return number;
}

struct move {
  const struct shard *old;
  struct shard *fresh;
};

static void move_slot(void *context, const struct slot *from, uint32_t number) {
  const struct move *move = context;
  struct shard *fresh = move->fresh;
  uint32_t place = fresh->free_list - 1;
  struct slot *slot = slot_at(fresh, place);
  fresh->free_list = (uint32_t)slot->address;
  *slot = *from;
  page_of(fresh, place)->seconds[place & (PAGE_SLOTS - 1)] = page_of(move->old, number)->seconds[number & (PAGE_SLOTS - 1)];
  hp_live_index_add(&fresh->index, hash_of(from->address), place);
}

/* The pages hold at least four times what is in use: move everything into new ones. Failing changes nothing: false. */
static HP_COLD bool compact(struct shard *s) {
  uint32_t pages_needed = s->count / PAGE_SLOTS + 1;
  struct shard fresh = {.lock = s->lock};
  bool ok = hp_live_index_make(&fresh.index, s->count * 2); /* room to grow again */
  for (uint32_t i = 0; i < pages_needed && ok; i++) ok = add_page(&fresh);
  struct move move = {s, &fresh};
  if (ok) for_each_slot(s, move_slot, &move);
  struct shard *outgrown = ok ? s : &fresh;
  for (uint32_t i = 0; i < outgrown->page_count; i++) hp_heap_free(outgrown->pages[i]);
  hp_heap_free(outgrown->pages);
  hp_live_index_free(&outgrown->index);
  s->compact_failed = ok ? 0 : s->count;
  if (!ok) return false;
  set_index(s, &fresh.index);
  s->free_list = fresh.free_list;
  s->page_count = fresh.page_count;
  s->page_capacity = fresh.page_capacity;
  s->pages = fresh.pages;
  return true;
}

static inline bool is_sparse(const struct shard *s) {
  uint32_t capacity = s->page_count << PAGE_BITS;
  return HP_UNLIKELY(capacity > 16 * PAGE_SLOTS && s->count < capacity / 4) &&
         (s->compact_failed == 0 || s->count <= s->compact_failed / 2);
}

struct wanted {
  const struct shard *shard;
  uintptr_t address;
};

static inline bool is_wanted(const void *context, uint32_t number) {
  const struct wanted *wanted = context;
  return slot_at(wanted->shard, number)->address == wanted->address;
}

static inline struct hp_live_place find(const struct shard *s, uint64_t hash, uintptr_t address) {
  struct wanted wanted = {s, address};
  return hp_live_index_find(&s->index, hash, is_wanted, &wanted);
}

static struct hp_live_record record_of(const struct shard *s, const struct slot *slot, uint32_t number) {
  return (struct hp_live_record){
      .address = slot->address,
      .size_thread = slot->size_thread,
      .weight = slot->weight,
      .stack_id = slot->stack_id,
      .time_seconds = hp_load_relaxed(&has_time) ? page_of(s, number)->seconds[number & (PAGE_SLOTS - 1)] : 0,
  };
}

static void take_out(struct shard *s, uint64_t hash, const struct hp_live_place *at, struct hp_live_record *out) {
  uint32_t number = hp_live_index_number(at);
  struct slot *slot = slot_at(s, number);
  *out = record_of(s, slot, number);
  add_moments(&s->moments.inuse_objects_variance, &s->moments.inuse_bytes_variance, slot->weight, hp_live_record_size(out),
              -1);
  hp_live_index_remove(&s->index, at);
  slot->weight = 0;
  slot->address = s->free_list;
  s->free_list = number + 1;
  hp_store_relaxed(&s->count, s->count - 1);
  hp_live_filter_count_down(hash);
}

static void put_in(struct shard *s, uint32_t number, const struct hp_live_record *r, uint64_t hash) {
  *slot_at(s, number) =
      (struct slot){.address = r->address, .size_thread = r->size_thread, .weight = r->weight, .stack_id = r->stack_id};
  if (HP_UNLIKELY(r->time_seconds != 0)) hp_store_relaxed(&has_time, true);
  if (HP_UNLIKELY(hp_load_relaxed(&has_time))) page_of(s, number)->seconds[number & (PAGE_SLOTS - 1)] = r->time_seconds;
  hp_live_index_add(&s->index, hash, number);
  hp_store_relaxed(&s->count, s->count + 1);
  if (HP_UNLIKELY(s->compact_failed != 0) && s->count > 2 * s->compact_failed) s->compact_failed = 0;
  add_moments(&s->moments.inuse_objects_variance, &s->moments.inuse_bytes_variance, r->weight, hp_live_record_size(r), 1);
  hp_live_filter_count_up(hash);
}

void hp_live_table_expect(uintptr_t address) {
  uint64_t hash = hash_of(address);
  const struct shard *s = shard_of(hash);
  /* Unlocked: what is read may be stale, and a prefetch of a wrong address does nothing. */
  struct hp_live_index index = {hp_load_relaxed(&s->index.chunks), hp_load_relaxed(&s->index.chunk_count)};
  __builtin_prefetch(hp_live_index_home(&index, hash), 1);
  uintptr_t filter = hp_load_relaxed(&hp_hot.filter);
  __builtin_prefetch((const uint8_t *)filter + (hash >> (filter & 63)), 1);
}

static bool is_over_limit(void) { return HP_UNLIKELY(test_limit != 0) && hp_live_table_count() >= test_limit; }

unsigned hp_live_table_insert(const struct hp_live_record *record, struct hp_live_record *out_missed) {
  if (HP_UNLIKELY(!hp_live_filter_exists())) {
    hp_store_relaxed(&is_used, true);
    fit_filter();
  }
  uint64_t hash = hash_of(record->address);
  struct shard *s = shard_of(hash);
  lock_shard(s);
  bool is_replaced = false;
  if (hp_live_filter_exists() && HP_UNLIKELY(hp_live_filter_is_counted(hash))) {
    struct hp_live_place at = find(s, hash, record->address);
    is_replaced = at.chunk != NULL;
    if (is_replaced) take_out(s, hash, &at, out_missed);
  }
  s->moments.samples++;
  add_moments(&s->moments.alloc_objects_variance, &s->moments.alloc_bytes_variance, record->weight,
              hp_live_record_size(record), 1);
  uint32_t number = !hp_live_filter_exists() || is_over_limit() ? 0 : take_slot(s);
  bool must_fit = false;
  if (number != 0) {
    put_in(s, number - 1, record, hash);
    if (HP_UNLIKELY(s->count > s->fit_checked)) { /* looked at anew when the shard grows by an eighth */
      s->fit_checked = s->count + s->count / 8;
      must_fit = hp_live_filter_is_too_full(hp_live_table_count());
    }
  }
  unlock_shard(s);
  if (HP_UNLIKELY(must_fit)) fit_filter();
  return (is_replaced ? HP_LIVE_REPLACED : 0) | (number != 0 ? HP_LIVE_INSERTED : 0);
}

bool hp_live_table_remove(uintptr_t address, struct hp_live_record *out) {
  uint64_t hash = hash_of(address);
  struct shard *s = shard_of(hash);
  bool shrank = false;
  lock_shard(s);
  struct hp_live_place at = find(s, hash, address);
  if (HP_LIKELY(at.chunk != NULL)) {
    take_out(s, hash, &at, out);
    if (HP_UNLIKELY(is_sparse(s))) shrank = compact(s);
  }
  unlock_shard(s);
  if (HP_UNLIKELY(shrank)) {
    fit_filter();
    hp_heap_trim();
  }
  return at.chunk != NULL;
}

struct visitor {
  void (*visit)(void *context, const struct hp_live_record *record);
  void *context;
  const struct shard *shard;
};

static void visit_slot(void *visitor, const struct slot *slot, uint32_t number) {
  const struct visitor *v = visitor;
  struct hp_live_record record = record_of(v->shard, slot, number);
  v->visit(v->context, &record);
}

void hp_live_table_walk(void (*visit)(void *context, const struct hp_live_record *record), void *context) {
  for (unsigned i = 0; i < SHARDS; i++) {
    struct visitor v = {visit, context, &shards[i]};
    lock_shard(&shards[i]);
    for_each_slot(&shards[i], visit_slot, &v);
    unlock_shard(&shards[i]);
  }
}

bool hp_live_table_put_back(const struct hp_live_record *record) {
  uint64_t hash = hash_of(record->address);
  struct shard *s = shard_of(hash);
  lock_shard(s);
  uint32_t number = take_slot(s); /* the one that was taken out is on the free list, or another's place is */
  if (number != 0) put_in(s, number - 1, record, hash);
  unlock_shard(s);
  return number != 0;
}

void hp_live_table_test_limit(uint64_t records) { test_limit = records; }
