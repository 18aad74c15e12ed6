/* SPDX-License-Identifier: MIT
 * stack_table.c - see stack_table.h.
 *
 *   buckets[hash & mask] --id--> entry --next id--> entry ...        directory[id / 1024][id % 1024] = entry
 *
 * Readers walk without a lock. The index grows by relinking every entry into a larger bucket array under the lock; a reader
 * in between may wander into another chain and miss (never loop: a next id always names an entry linked earlier), and a miss
 * is looked up again under the lock. Outgrown bucket arrays are kept: a reader may still hold one, and together they are no
 * larger than the newest. */
#include "stack_table.h"

#include <string.h>

#include "hash.h"
#include "heap.h"
#include "lock.h"
#include "thread_state.h"

enum {
  FIRST_BUCKETS = 1024,
  DIRECTORY_PAGE = 1024, /* entries a page */
  DIRECTORY_PAGES = 16384,
  FIRST_CHUNK_BYTES = 16 * 1024,
  CHUNK_BYTES = 256 * 1024,
  DEPTH_MAX = 0xFFFF,
};

_Static_assert(sizeof(struct hp_stack) == 64, "the stated cost of an entry");

struct bucket_array {
  uint32_t mask;
  uint32_t ids[];
};

static struct hp_lock lock;
static struct bucket_array *buckets; /* atomic */
static struct hp_stack **directory[DIRECTORY_PAGES];
static uint32_t entry_count; /* atomic: entries 0 and 1 are the pseudo ones, counted once made */
static char *chunk, *chunk_end;
static bool is_saturated;
static bool force_hash;
static uint32_t test_limit;

static struct hp_stack pseudo_none = {.id = HP_STACK_ID_NONE, .kind = HP_STACK_NONE};
static struct hp_stack pseudo_full = {.id = HP_STACK_ID_FULL, .kind = HP_STACK_TABLE_FULL};

void hp_stack_table_lock(void) { hp_lock_acquire(&lock); }
void hp_stack_table_unlock(void) { hp_lock_release(&lock); }

static void lock_unless_forking(void) {
  if (!hp_thread.holds_all_locks) hp_lock_acquire(&lock);
}
static void unlock_unless_forking(void) {
  if (!hp_thread.holds_all_locks) hp_lock_release(&lock);
}

struct hp_stack *hp_stack_table_get(uint32_t id) {
  if (id == HP_STACK_ID_NONE) return &pseudo_none;
  if (id == HP_STACK_ID_FULL) return &pseudo_full;
  return hp_load_acquire(&directory[id / DIRECTORY_PAGE])[id % DIRECTORY_PAGE];
}

uint32_t hp_stack_table_count(void) {
  uint32_t n = hp_load_acquire(&entry_count);
  return n < HP_STACK_ID_FIRST ? HP_STACK_ID_FIRST : n;
}

static bool entry_matches(const struct hp_stack *e, uint64_t hash, const uintptr_t *pcs, uint32_t depth,
                          enum hp_stack_kind kind, uint64_t label) {
  return e->hash == hash && e->depth == depth && e->kind == kind && e->label == label &&
         hp_load_relaxed(&e->closed_set) == 0 && memcmp(e->pcs, pcs, depth * sizeof pcs[0]) == 0;
}

static struct hp_stack *find(uint64_t hash, const uintptr_t *pcs, uint32_t depth, enum hp_stack_kind kind, uint64_t label) {
  struct bucket_array *array = hp_load_acquire(&buckets);
  if (array == NULL) return NULL;
  uint32_t id = hp_load_acquire(&array->ids[hash & array->mask]);
  while (id != HP_NO_STACK) {
    struct hp_stack *e = hp_stack_table_get(id);
    if (entry_matches(e, hash, pcs, depth, kind, label)) return e;
    id = hp_load_acquire(&e->next);
  }
  return NULL;
}

/* ---- inserting, under the lock ---- */
static struct bucket_array *new_buckets(uint32_t n) {
  struct bucket_array *array = hp_heap_alloc(sizeof *array + n * sizeof array->ids[0]);
  if (array == NULL) return NULL;
  array->mask = n - 1;
  memset(array->ids, 0xFF, n * sizeof array->ids[0]); /* HP_NO_STACK */
  return array;
}

static void link_entry(struct bucket_array *array, struct hp_stack *e) {
  uint32_t *bucket = &array->ids[e->hash & array->mask];
  hp_store_release(&e->next, *bucket);
  hp_store_release(bucket, e->id);
}

static void grow_buckets(void) {
  struct bucket_array *array = new_buckets((buckets->mask + 1) * 2);
  if (array == NULL) return; /* longer chains, nothing worse */
  for (uint32_t id = HP_STACK_ID_FIRST; id < entry_count; id++) link_entry(array, hp_stack_table_get(id));
  hp_store_release(&buckets, array);
}

static void *take_bytes(size_t size) {
  if ((size_t)(chunk_end - chunk) < size) {
    size_t least = size > FIRST_CHUNK_BYTES ? size : FIRST_CHUNK_BYTES;
    size_t bytes = entry_count < 64 || least > CHUNK_BYTES ? least : CHUNK_BYTES;
    char *fresh = hp_heap_alloc(bytes);
    if (fresh == NULL && bytes > least) fresh = hp_heap_alloc(bytes = least);
    if (fresh == NULL) return NULL;
    chunk = fresh;
    chunk_end = fresh + bytes;
  }
  void *bytes = chunk;
  chunk += size;
  return bytes;
}

/* Buckets and a directory slot for the next id, or false. */
static bool make_room(void) {
  if (buckets == NULL) {
    struct bucket_array *array = new_buckets(FIRST_BUCKETS);
    if (array == NULL) return false;
    hp_store_release(&buckets, array);
    hp_store_release(&entry_count, HP_STACK_ID_FIRST);
  }
  if (test_limit != 0 && entry_count >= HP_STACK_ID_FIRST + test_limit) return false;
  uint32_t page = entry_count / DIRECTORY_PAGE;
  if (page >= DIRECTORY_PAGES) return false;
  if (directory[page] == NULL) {
    struct hp_stack **fresh = hp_heap_alloc(DIRECTORY_PAGE * sizeof *fresh);
    if (fresh == NULL) return false;
    hp_store_release(&directory[page], fresh);
  }
  if (entry_count > buckets->mask) grow_buckets();
  return true;
}

static struct hp_stack *insert(uint64_t hash, const uintptr_t *pcs, uint32_t depth, enum hp_stack_kind kind,
                               uint64_t label) {
  if (!make_room()) return NULL;
  struct hp_stack *e = take_bytes(sizeof *e + depth * sizeof e->pcs[0]);
  if (e == NULL) return NULL;
  memset(e, 0, sizeof *e);
  e->hash = hash;
  e->label = label;
  e->id = entry_count;
  e->depth = (uint16_t)depth;
  e->kind = (uint8_t)kind;
  memcpy(e->pcs, pcs, depth * sizeof pcs[0]);
  directory[e->id / DIRECTORY_PAGE][e->id % DIRECTORY_PAGE] = e;
  hp_store_release(&entry_count, e->id + 1);
  link_entry(buckets, e);
  return e;
}

struct hp_stack *hp_stack_table_intern(const uintptr_t *pcs, uint32_t depth, enum hp_stack_kind kind, uint64_t label) {
  if (depth > DEPTH_MAX) { /* the field is 16 bits wide: cut, never wrapped */
    depth = DEPTH_MAX;
    kind = HP_STACK_TRUNCATED;
  }
  return hp_stack_table_intern_sum(pcs, depth, kind, label, hp_hash_sum(pcs, depth, 0));
}

struct hp_stack *hp_stack_table_intern_sum(const uintptr_t *pcs, uint32_t depth, enum hp_stack_kind kind, uint64_t label,
                                           uint64_t sum) {
  if (depth == 0) return &pseudo_none;
  uint64_t hash = force_hash ? 1 : hp_hash_of_sum(sum, depth, label + kind);
  struct hp_stack *e = find(hash, pcs, depth, kind, label);
  if (HP_LIKELY(e != NULL)) return e;
  lock_unless_forking();
  e = find(hash, pcs, depth, kind, label);
  if (e == NULL) e = insert(hash, pcs, depth, kind, label);
  unlock_unless_forking();
  return e != NULL ? e : &pseudo_full;
}

static bool passes_through(const struct hp_stack *e, uintptr_t start, uintptr_t end) {
  for (uint32_t i = 0; i < e->depth; i++) {
    if (e->pcs[i] > start && e->pcs[i] <= end) return true;
  }
  return false;
}

void hp_stack_table_close_range(uintptr_t start, uintptr_t end, hp_stack_set_of *set_of) {
  lock_unless_forking();
  for (uint32_t id = HP_STACK_ID_FIRST; id < entry_count; id++) {
    struct hp_stack *e = hp_stack_table_get(id);
    if (e->closed_set == 0 && passes_through(e, start, end)) hp_store_release(&e->closed_set, set_of(e->pcs, e->depth));
  }
  unlock_unless_forking();
}

/* Opening makes no twin: of one key there is one entry for each way its frames can belong to modules. */
void hp_stack_table_reopen_range(uintptr_t start, uintptr_t end, hp_stack_is_back *is_back) {
  lock_unless_forking();
  for (uint32_t id = HP_STACK_ID_FIRST; id < entry_count; id++) {
    struct hp_stack *e = hp_stack_table_get(id);
    if (e->closed_set == 0 || !passes_through(e, start, end)) continue;
    if (is_back(e->closed_set, e->pcs, e->depth)) hp_store_release(&e->closed_set, 0);
  }
  unlock_unless_forking();
}

/* ---- counters ---- */
static void add_saturating(uint64_t *counter, uint64_t amount, int order) {
  uint64_t before = order == __ATOMIC_RELEASE ? __atomic_fetch_add(counter, amount, __ATOMIC_RELEASE)
                                              : __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
  if (HP_UNLIKELY(before + amount < before)) {
    hp_store_relaxed(counter, UINT64_MAX);
    hp_store_relaxed(&is_saturated, true);
  }
}

void hp_stack_add_alloc(struct hp_stack *stack, uint64_t objects, uint64_t bytes) {
  add_saturating(&stack->alloc_objects, objects, __ATOMIC_RELAXED);
  add_saturating(&stack->alloc_bytes, bytes, __ATOMIC_RELEASE);
}

void hp_stack_add_free(struct hp_stack *stack, uint64_t objects, uint64_t bytes) {
  add_saturating(&stack->freed_objects, objects, __ATOMIC_RELEASE);
  add_saturating(&stack->freed_bytes, bytes, __ATOMIC_RELEASE);
}

void hp_stack_load(const struct hp_stack *stack, struct hp_stack_counts *out) {
  out->freed_bytes = hp_load_acquire(&stack->freed_bytes);
  out->freed_objects = hp_load_acquire(&stack->freed_objects);
  out->alloc_bytes = hp_load_acquire(&stack->alloc_bytes);
  out->alloc_objects = hp_load_relaxed(&stack->alloc_objects);
}

void hp_stack_table_totals(struct hp_stack_totals *out) {
  const double object = 1.0 / (1 << HP_OBJECT_FRACTION_BITS), byte = 1.0 / (1 << HP_BYTE_FRACTION_BITS);
  *out = (struct hp_stack_totals){0};
  uint32_t count = hp_stack_table_count();
  for (uint32_t id = 0; id < count; id++) {
    struct hp_stack_counts c;
    hp_stack_load(hp_stack_table_get(id), &c);
    out->alloc_objects += (double)c.alloc_objects * object;
    out->alloc_bytes += (double)c.alloc_bytes * byte;
    out->inuse_objects += (double)(c.alloc_objects - c.freed_objects) * object;
    out->inuse_bytes += (double)(c.alloc_bytes - c.freed_bytes) * byte;
  }
}

bool hp_stack_table_saturated(void) { return hp_load_relaxed(&is_saturated); }

void hp_stack_table_test_force_hash(bool constant) { force_hash = constant; }
void hp_stack_table_test_limit(uint32_t entries) { test_limit = entries; }
