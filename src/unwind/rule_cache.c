/* SPDX-License-Identifier: MIT
 * rule_cache.c - see rule_cache.h. */
#include "rule_cache.h"

#include "heap.h"
#include "lock.h"

enum {
  HP_RULE_ENTRIES_FIRST = 1 << HP_RULE_INDEX_BITS, /* of each array; fewer would need more tag bits. 64 KiB in all */
  HP_RULE_ENTRIES_MAX = 1 << 16,                   /* 1 MiB in all */
};

static uint64_t empty_entry;
struct hp_rule_table hp_rule_table_empty = {.index_mask = 0, .first = &empty_entry, .second = &empty_entry};

struct hp_rule_cache hp_rule_cache = {.current = &hp_rule_table_empty};

static struct hp_lock cache_lock;
static struct hp_rule_table *real_table; /* NULL before the first insert; all below: under the lock */
static uint32_t evictions;               /* since the table was made */
static uint32_t suspensions;
static uint32_t flushed_deaths; /* the deaths that the last flush came after */
static size_t cache_bytes;

static size_t entry_count(const struct hp_rule_table *table) { return table->index_mask + 1; }

static struct hp_rule_table *create_table_locked(size_t entries) {
  size_t array_bytes = entries * sizeof(uint64_t);
  size_t size = HP_CACHE_LINE + 2 * array_bytes;
  char *memory = hp_heap_alloc_aligned_zero(HP_CACHE_LINE, size);
  if (memory == NULL) return NULL;
  struct hp_rule_table *table = (struct hp_rule_table *)(void *)memory;
  table->index_mask = entries - 1;
  table->first = (uint64_t *)(void *)(memory + HP_CACHE_LINE);
  table->second = (uint64_t *)(void *)(memory + HP_CACHE_LINE + array_bytes);
  cache_bytes += size;
  return table;
}

static bool is_same_key(uint64_t left, uint64_t right) { return ((left ^ right) & HP_RULE_TAG_MASK) == 0; }

/* Puts the entry into its place; true when another one had to go. */
static bool place_entry(struct hp_rule_table *table, uintptr_t number, uint64_t entry) {
  uint64_t *first = &table->first[number & table->index_mask];
  uint64_t *second = &table->second[number & table->index_mask];
  uint64_t old = hp_load_relaxed(first);
  uint64_t older = hp_load_relaxed(second);
  if (old == 0 || is_same_key(old, entry)) {
    hp_store_relaxed(first, entry);
    return false;
  }
  if (older == 0 || is_same_key(older, entry)) {
    hp_store_relaxed(second, entry);
    return false;
  }
  hp_store_relaxed(second, old); /* the newest comes first: what is in use comes back */
  hp_store_relaxed(first, entry);
  return true;
}

static void copy_entries(struct hp_rule_table *to, const struct hp_rule_table *from, const uint64_t *array) {
  const uintptr_t known_bits = ((uintptr_t)1 << HP_RULE_INDEX_BITS) - 1;
  for (size_t i = 0; i < entry_count(from); i++) {
    uint64_t entry = hp_load_relaxed(&array[i]);
    if (entry != 0) place_entry(to, (entry & HP_RULE_TAG_MASK) << HP_RULE_INDEX_BITS | (i & known_bits), entry);
  }
}

static void grow_locked(void) {
  size_t entries = real_table == NULL ? HP_RULE_ENTRIES_FIRST : 2 * entry_count(real_table);
  evictions = 0;
  if (entries > HP_RULE_ENTRIES_MAX) return;
  struct hp_rule_table *table = create_table_locked(entries);
  if (table == NULL) return; /* at the ceiling: go on with what there is */
  if (real_table != NULL) {
    copy_entries(table, real_table, real_table->first);
    copy_entries(table, real_table, real_table->second);
  }
  real_table = table;
  if (suspensions == 0) hp_store_release(&hp_rule_cache.current, table);
}

void hp_rule_cache_insert(uintptr_t key, uint64_t rule, uint32_t generation) {
  uintptr_t number = key >> HP_PC_SHIFT;
  uint64_t tag = number >> HP_RULE_INDEX_BITS;
  if (!hp_rule_is_cachable(key) || tag == 0 || !hp_lock_try(&cache_lock)) return;
  if (generation == hp_rule_cache.generation && suspensions == 0) {
    if (real_table == NULL || evictions > entry_count(real_table) / 4) grow_locked();
    if (real_table != NULL && place_entry(real_table, number, rule | tag)) evictions++;
  }
  hp_lock_release(&cache_lock);
}

static void flush_locked(uint32_t deaths) {
  flushed_deaths = deaths;
  hp_store_release(&hp_rule_cache.generation, hp_rule_cache.generation + 1);
  if (real_table == NULL) return;
  for (size_t i = 0; i < entry_count(real_table); i++) {
    if (hp_load_relaxed(&real_table->first[i]) != 0) hp_store_relaxed(&real_table->first[i], 0);
    if (hp_load_relaxed(&real_table->second[i]) != 0) hp_store_relaxed(&real_table->second[i], 0);
  }
}

void hp_rule_cache_flush(uint32_t deaths) {
  hp_lock_acquire(&cache_lock);
  flush_locked(deaths);
  hp_lock_release(&cache_lock);
}

void hp_rule_cache_suspend(void) {
  hp_lock_acquire(&cache_lock);
  suspensions++;
  __atomic_store_n(&hp_rule_cache.current, &hp_rule_table_empty, __ATOMIC_SEQ_CST);
  hp_lock_release(&cache_lock);
}

void hp_rule_cache_resume(uint32_t deaths) {
  hp_lock_acquire(&cache_lock);
  if (deaths != flushed_deaths) flush_locked(deaths);
  if (--suspensions == 0 && real_table != NULL) hp_store_release(&hp_rule_cache.current, real_table);
  hp_lock_release(&cache_lock);
}

void hp_rule_cache_after_fork(uint32_t own) {
  if (suspensions == own || !hp_lock_try(&cache_lock)) return;
  suspensions = own;
  flush_locked(flushed_deaths); /* of a library that was going nobody will say that it went */
  if (own == 0 && real_table != NULL) hp_store_release(&hp_rule_cache.current, real_table);
  hp_lock_release(&cache_lock);
}

size_t hp_rule_cache_bytes(void) { return hp_load_relaxed(&cache_bytes); }
void hp_rule_cache_lock(void) { hp_lock_acquire(&cache_lock); }
void hp_rule_cache_unlock(void) { hp_lock_release(&cache_lock); }
