/* SPDX-License-Identifier: MIT
 * live_table.c - see live_table.h.
 *
 *   hash of the address:  | shard 6 bits | filter index and bucket come from the bits below the shard's |
 *
 * The filter's index starts with the shard's bits, so that all blocks that share a counter share a shard: the counter is
 * written under that shard's lock, by plain stores.
 * A shard: buckets[] of record numbers (+1; 0 empty), records in pages of 32, a free list through `next`.
 * The filter is replaced when it gets too full (or far too empty): all shards are locked, counters are made anew from the
 * records, the word in hp_hot is published. A reader that still holds the old word sees the old counters, which stay as
 * they were at that moment: every block inserted before is in them, and of a block inserted later it cannot know (whoever
 * handed it the pointer also made it see the new word). Old counters are given back only after a while (reclaim). */
#include "live_table.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "heap.h"
#include "hot.h"
#include "lock.h"
#include "thread_state.h"

enum {
  SHARD_BITS = 6,
  SHARDS = 1 << SHARD_BITS,
  PAGE_BITS = 5,
  PAGE_RECORDS = 1 << PAGE_BITS,
  FIRST_BUCKETS = 16,
  FILTER_FIRST_BITS = 12, /* 4096 counters: one page */
  FILTER_MAX_BITS = 28,
  FILTER_CACHED_BITS = 17, /* up to 2^17 counters (they stay in L2): at most 1/32 full */
  FILTER_SPARSE_BITS = 20, /* up to 2^20: at most 1/16 full; above: at most 1/8 */
  COUNTER_STUCK = 255,     /* a counter that got here stays: never a false "no" */
  RETIRED_MAX = 64,
  RETIRE_SECONDS = 10,
};

struct page {
  struct hp_live_record records[PAGE_RECORDS];
};

struct shard {
  struct hp_lock lock;
  uint32_t count;       /* atomic for hp_live_table_count */
  uint32_t fit_checked; /* the filter's size is no question up to this count */
  uint32_t bucket_mask; /* buckets - 1 */
  uint32_t free_list;   /* number + 1, or 0 */
  uint32_t page_count;
  uint32_t page_capacity;
  uint32_t compact_failed; /* with this many records there was no memory to compact: not tried again until half are left */
  uint32_t *buckets;
  struct page **pages;
  struct hp_live_moments moments;
} __attribute__((aligned(HP_CACHE_LINE)));

static struct shard shards[SHARDS];

/* Guarded by all shard locks together. */
static void *filter_memory;
static uint8_t *filter_counters; /* in it; NULL: the initial zeros */
static unsigned filter_bits;
static struct {
  void *at;
  size_t bytes;
  uint64_t since_seconds; /* CLOCK_MONOTONIC */
} retired[RETIRED_MAX];
static unsigned retired_count;
static bool is_used; /* atomic: something was inserted */

static uint64_t test_limit;

static inline uint64_t hash_of(uintptr_t address) { return hp_address_hash((const void *)address); }
static inline struct shard *shard_of(uint64_t hash) { return &shards[hash >> (64 - SHARD_BITS)]; }
static inline uint32_t bucket_of(const struct shard *s, uint64_t hash) {
  return (uint32_t)(hash >> (64 - SHARD_BITS - 28)) & s->bucket_mask;
}
static inline struct hp_live_record *record_at(const struct shard *s, uint32_t number) {
  return &s->pages[number >> PAGE_BITS]->records[number & (PAGE_RECORDS - 1)];
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
static void add_moments(double *objects, double *bytes, const struct hp_live_record *r, double sign) {
  if (r->weight == 1.0f) return;
  double variance = sign * (double)r->weight * ((double)r->weight - 1.0);
  double size = (double)hp_live_record_size(r);
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

/* ---- the filter ---- */
static void filter_count_up(uint64_t hash) {
  uint8_t *counter = &filter_counters[hash >> (64 - filter_bits)];
  if (*counter != COUNTER_STUCK) hp_store_relaxed(counter, (uint8_t)(*counter + 1));
}
static void filter_count_down(uint64_t hash) {
  uint8_t *counter = &filter_counters[hash >> (64 - filter_bits)];
  if (*counter != COUNTER_STUCK) hp_store_relaxed(counter, (uint8_t)(*counter - 1));
}

/* How many records a filter of so many counters may hold. */
static uint64_t filter_capacity(unsigned bits) {
  return (uint64_t)1 << (bits - (bits <= FILTER_CACHED_BITS ? 5 : bits <= FILTER_SPARSE_BITS ? 4 : 3));
}

static uint64_t monotonic_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint64_t)now.tv_sec;
}

static size_t filter_bytes(unsigned bits) { return ((size_t)1 << bits) + HP_FILTER_SLACK; }

static void filter_retire(void) {
  if (filter_counters == NULL) return;
  if (retired_count == RETIRED_MAX) return; /* stays mapped for good: 64 replacements within ten seconds */
  retired[retired_count].at = filter_memory;
  retired[retired_count].bytes = filter_bytes(filter_bits);
  retired[retired_count].since_seconds = monotonic_seconds();
  hp_store_relaxed(&retired_count, retired_count + 1);
}

/* All shards locked. False: no memory, the old filter stays (fuller, still true). */
static bool filter_replace(unsigned bits) {
  size_t bytes = filter_bytes(bits);
  if (!hp_memory_reserve(bytes)) return false;
  uint8_t *fresh = hp_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (hp_sys_failed(fresh)) {
    hp_memory_release(bytes);
    return false;
  }
  filter_retire();
  filter_memory = fresh;
  hp_store_relaxed(&filter_counters, hp_filter_place(fresh, bits));
  filter_bits = bits;
  for (unsigned i = 0; i < SHARDS; i++) {
    struct shard *s = &shards[i];
    s->fit_checked = 0;
    for (uint32_t b = 0; s->buckets != NULL && b <= s->bucket_mask; b++) {
      for (uint32_t n = s->buckets[b]; n != 0; n = record_at(s, n - 1)->next) {
        filter_count_up(hash_of(record_at(s, n - 1)->address));
      }
    }
  }
  hp_store_release(&hp_hot.filter, (uintptr_t)filter_counters);
  return true;
}

/* No lock held. Makes the filter fit the number of records. */
static HP_COLD void filter_fit(void) {
  if (!hp_thread.holds_all_locks) hp_live_table_lock_all();
  uint64_t count = hp_live_table_count();
  unsigned bits = FILTER_FIRST_BITS;
  while (bits < FILTER_MAX_BITS && filter_capacity(bits) < count * 2) bits++;
  bool too_full = filter_counters == NULL || count > filter_capacity(filter_bits);
  bool too_empty = filter_counters != NULL && bits + 3 < filter_bits;
  if ((too_full || too_empty) && !(filter_counters != NULL && bits == filter_bits)) filter_replace(bits);
  if (!hp_thread.holds_all_locks) hp_live_table_unlock_all();
}

void hp_live_table_reclaim(uint64_t now_seconds) {
  if (hp_thread.holds_all_locks) return; /* the process is ending inside the table */
  if (!hp_load_relaxed(&is_used)) return;
  hp_live_table_lock_all();
  unsigned kept = 0;
  for (unsigned i = 0; i < retired_count; i++) {
    if (now_seconds < retired[i].since_seconds + RETIRE_SECONDS) {
      retired[kept++] = retired[i];
      continue;
    }
    /* Emptied, not unmapped: a reader that slept all the while must find memory there. */
    hp_sys_madvise(retired[i].at, retired[i].bytes, MADV_DONTNEED);
    hp_memory_release(retired[i].bytes);
  }
  hp_store_relaxed(&retired_count, kept);
  hp_live_table_unlock_all();
  /* The last blocks to go compact no shard, and the filter stayed as it was for many more. Once in ten seconds: a program that
   * grows and shrinks all the time would retire more than there is room for. */
  if (kept == 0) filter_fit();
}

/* ---- a shard, under its lock ---- */
static bool resize_buckets(struct shard *s, uint32_t n) {
  uint32_t *fresh = hp_heap_alloc(n * sizeof *fresh);
  if (fresh == NULL) return false;
  memset(fresh, 0, n * sizeof *fresh);
  uint32_t *old = s->buckets;
  uint32_t old_count = old == NULL ? 0 : s->bucket_mask + 1;
  s->buckets = fresh;
  s->bucket_mask = n - 1;
  for (uint32_t b = 0; b < old_count; b++) {
    uint32_t number = old[b];
    while (number != 0) {
      struct hp_live_record *r = record_at(s, number - 1);
      uint32_t next = r->next;
      uint32_t *head = &fresh[bucket_of(s, hash_of(r->address))];
      r->next = *head;
      *head = number;
      number = next;
    }
  }
  hp_heap_free(old);
  return true;
}

static bool add_page(struct shard *s) {
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
  for (uint32_t i = PAGE_RECORDS; i-- > 0;) {
    page->records[i].next = s->free_list;
    s->free_list = base + i + 1;
  }
  return true;
}

/* A free record number + 1, or 0. */
static uint32_t take_record(struct shard *s) {
  if (s->buckets == NULL && !resize_buckets(s, FIRST_BUCKETS)) return 0;
  if (s->free_list == 0 && (hp_memory_above_eighths(HP_LIVE_EIGHTHS) || !add_page(s))) return 0;
  /* Two records a bucket at most: 4 bytes of bucket for a record or less. Failing: longer chains. */
  if (s->count / 2 > s->bucket_mask) resize_buckets(s, (s->bucket_mask + 1) * 2);
  uint32_t number = s->free_list;
  s->free_list = record_at(s, number - 1)->next;
  return number;
}

/* The pages hold at least four times what is in use: move everything into new ones. Failing changes nothing: false. */
static HP_COLD bool compact(struct shard *s) {
  uint32_t pages_needed = (s->count + PAGE_RECORDS - 1) / PAGE_RECORDS;
  if (pages_needed == 0) pages_needed = 1;
  struct shard fresh = {.lock = s->lock};
  bool ok = true;
  for (uint32_t i = 0; i < pages_needed && ok; i++) ok = add_page(&fresh);
  uint32_t n = FIRST_BUCKETS;
  while (n < s->count) n *= 2; /* room to grow again */
  ok = ok && resize_buckets(&fresh, n);
  if (ok) {
    for (uint32_t b = 0; b <= s->bucket_mask; b++) {
      for (uint32_t number = s->buckets[b]; number != 0; number = record_at(s, number - 1)->next) {
        struct hp_live_record *from = record_at(s, number - 1);
        uint32_t to = fresh.free_list;
        struct hp_live_record *r = record_at(&fresh, to - 1);
        fresh.free_list = r->next;
        *r = *from;
        uint32_t *head = &fresh.buckets[bucket_of(&fresh, hash_of(r->address))];
        r->next = *head;
        *head = to;
      }
    }
  }
  struct shard *empty = ok ? s : &fresh;
  struct shard old = *empty;
  for (uint32_t i = 0; i < old.page_count; i++) hp_heap_free(old.pages[i]);
  hp_heap_free(old.pages);
  hp_heap_free(old.buckets);
  s->compact_failed = ok ? 0 : s->count;
  if (!ok) return false;
  s->bucket_mask = fresh.bucket_mask;
  s->free_list = fresh.free_list;
  s->page_count = fresh.page_count;
  s->page_capacity = fresh.page_capacity;
  s->buckets = fresh.buckets;
  s->pages = fresh.pages;
  return true;
}

static inline bool is_sparse(const struct shard *s) {
  uint32_t capacity = s->page_count << PAGE_BITS;
  return HP_UNLIKELY(capacity > 16 * PAGE_RECORDS && s->count < capacity / 4) &&
         (s->compact_failed == 0 || s->count <= s->compact_failed / 2);
}

/* The link that names the record of this address: a bucket or a record's `next`; NULL if there is none. */
static uint32_t *find_link(struct shard *s, uint64_t hash, uintptr_t address) {
  if (s->buckets == NULL) return NULL;
  uint32_t *link = &s->buckets[bucket_of(s, hash)];
  while (*link != 0) {
    struct hp_live_record *r = record_at(s, *link - 1);
    if (r->address == address) return link;
    link = &r->next;
  }
  return NULL;
}

static void unlink_record(struct shard *s, uint32_t *link, uint64_t hash) {
  uint32_t number = *link;
  struct hp_live_record *r = record_at(s, number - 1);
  add_moments(&s->moments.inuse_objects_variance, &s->moments.inuse_bytes_variance, r, -1);
  *link = r->next;
  r->next = s->free_list;
  s->free_list = number;
  hp_store_relaxed(&s->count, s->count - 1);
  filter_count_down(hash);
}

static void link_record(struct shard *s, uint32_t number, const struct hp_live_record *record, uint64_t hash) {
  struct hp_live_record *r = record_at(s, number - 1);
  uint32_t *head = &s->buckets[bucket_of(s, hash)];
  *r = *record;
  r->next = *head;
  *head = number;
  hp_store_relaxed(&s->count, s->count + 1);
  if (HP_UNLIKELY(s->compact_failed != 0) && s->count > 2 * s->compact_failed) s->compact_failed = 0;
  add_moments(&s->moments.inuse_objects_variance, &s->moments.inuse_bytes_variance, r, 1);
  filter_count_up(hash);
}

static bool is_over_limit(void) { return HP_UNLIKELY(test_limit != 0) && hp_live_table_count() >= test_limit; }

unsigned hp_live_table_insert(const struct hp_live_record *record, struct hp_live_record *out_missed) {
  if (HP_UNLIKELY(hp_load_relaxed(&filter_counters) == NULL)) {
    hp_store_relaxed(&is_used, true);
    filter_fit();
  }
  uint64_t hash = hash_of(record->address);
  struct shard *s = shard_of(hash);
  bool replaced = false;
  lock_shard(s);
  uint32_t *link = find_link(s, hash, record->address);
  if (link != NULL) {
    *out_missed = *record_at(s, *link - 1);
    unlink_record(s, link, hash);
    replaced = true;
  }
  s->moments.samples++;
  add_moments(&s->moments.alloc_objects_variance, &s->moments.alloc_bytes_variance, record, 1);
  uint32_t number = filter_counters == NULL || is_over_limit() ? 0 : take_record(s);
  bool fit = false;
  if (number != 0) {
    link_record(s, number, record, hash);
    if (HP_UNLIKELY(s->count > s->fit_checked)) { /* looked at anew when the shard grows by an eighth */
      s->fit_checked = s->count + s->count / 8;
      fit = hp_live_table_count() > filter_capacity(filter_bits);
    }
  }
  unlock_shard(s);
  if (HP_UNLIKELY(fit)) filter_fit();
  return (replaced ? HP_LIVE_REPLACED : 0) | (number != 0 ? HP_LIVE_INSERTED : 0);
}

bool hp_live_table_remove(uintptr_t address, struct hp_live_record *out) {
  uint64_t hash = hash_of(address);
  struct shard *s = shard_of(hash);
  bool shrank = false;
  lock_shard(s);
  uint32_t *link = find_link(s, hash, address);
  if (link != NULL) {
    *out = *record_at(s, *link - 1);
    unlink_record(s, link, hash);
    if (HP_UNLIKELY(is_sparse(s))) shrank = compact(s);
  }
  unlock_shard(s);
  if (HP_UNLIKELY(shrank)) {
    filter_fit();
    hp_heap_trim();
  }
  return link != NULL;
}

void hp_live_table_walk(void (*visit)(void *context, const struct hp_live_record *record), void *context) {
  for (unsigned i = 0; i < SHARDS; i++) {
    struct shard *s = &shards[i];
    lock_shard(s);
    for (uint32_t b = 0; s->buckets != NULL && b <= s->bucket_mask; b++) {
      for (uint32_t n = s->buckets[b]; n != 0; n = record_at(s, n - 1)->next) visit(context, record_at(s, n - 1));
    }
    unlock_shard(s);
  }
}

bool hp_live_table_put_back(const struct hp_live_record *record) {
  uint64_t hash = hash_of(record->address);
  struct shard *s = shard_of(hash);
  lock_shard(s);
  uint32_t number = take_record(s); /* the one that was taken out is on the free list, or another's place is */
  if (number != 0) link_record(s, number, record, hash);
  unlock_shard(s);
  return number != 0;
}

void hp_live_table_test_limit(uint64_t records) { test_limit = records; }
