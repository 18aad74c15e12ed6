/* SPDX-License-Identifier: MIT
 * rule_cache.c - see rule_cache.h. */
#include "rule_cache.h"

#include "heap.h"
#include "lock.h"

enum {
  HP_RULE_BUCKETS_FIRST = 1 << HP_RULE_TAG_SHIFT, /* fewer would need more tag bits */
  HP_RULE_BUCKETS_MAX = 1 << 16,                  /* 1 MiB */
};

/* One empty bucket: every look-up misses. */
static const struct {
  uint64_t bucket_mask;
  uint64_t entries[2];
} empty_table;
#define HP_RULE_TABLE_EMPTY ((struct hp_rule_table *)(uintptr_t)&empty_table)

struct hp_rule_cache hp_rule_cache = {.current = HP_RULE_TABLE_EMPTY};

static struct hp_lock cache_lock;
static struct hp_rule_table *real_table; /* NULL before the first insert; all below: under the lock */
static uint32_t evictions;               /* since the table was made */
static uint32_t suspensions;
static size_t cache_bytes;

static struct hp_rule_table *create_table_locked(uint64_t buckets) {
  /* The buckets start on a cache line: the mask sits in the last word of the line before. */
  size_t size = HP_CACHE_LINE + buckets * 2 * sizeof(uint64_t);
  char *memory = hp_heap_alloc_aligned_zero(HP_CACHE_LINE, size);
  if (memory == NULL) return NULL;
  struct hp_rule_table *table = (struct hp_rule_table *)(void *)(memory + HP_CACHE_LINE - sizeof(struct hp_rule_table));
  table->bucket_mask = buckets - 1;
  cache_bytes += size;
  return table;
}

/* Puts the entry into its bucket; true when another one had to go. */
static bool place_entry(struct hp_rule_table *table, uintptr_t number, uint64_t entry) {
  uint64_t *bucket = &table->entries[2 * (number & table->bucket_mask)];
  uint64_t first = hp_load_relaxed(&bucket[0]);
  if (first == 0 || ((first ^ entry) & HP_RULE_TAG_MASK) == 0) {
    hp_store_relaxed(&bucket[0], entry);
    return false;
  }
  uint64_t second = hp_load_relaxed(&bucket[1]);
  if (second == 0 || ((second ^ entry) & HP_RULE_TAG_MASK) == 0) {
    hp_store_relaxed(&bucket[1], entry);
    return false;
  }
  hp_store_relaxed(&bucket[1], first); /* the newest first: what is in use comes back */
  hp_store_relaxed(&bucket[0], entry);
  return true;
}

static void grow_locked(void) {
  uint64_t buckets = real_table == NULL ? HP_RULE_BUCKETS_FIRST : 2 * (real_table->bucket_mask + 1);
  evictions = 0;
  if (buckets > HP_RULE_BUCKETS_MAX) return;
  struct hp_rule_table *table = create_table_locked(buckets);
  if (table == NULL) return; /* at the ceiling: go on with what there is */
  if (real_table != NULL) {
    for (uint64_t i = 0; i < 2 * (real_table->bucket_mask + 1); i++) {
      uint64_t entry = hp_load_relaxed(&real_table->entries[i]);
      uintptr_t lower_bits = (i / 2) & (((uintptr_t)1 << HP_RULE_TAG_SHIFT) - 1);
      if (entry != 0) place_entry(table, (entry & HP_RULE_TAG_MASK) << HP_RULE_TAG_SHIFT | lower_bits, entry);
    }
  }
  real_table = table;
  if (suspensions == 0) hp_store_release(&hp_rule_cache.current, table);
}

void hp_rule_cache_insert(uintptr_t key, uint64_t rule, uint32_t generation) {
  uintptr_t number = key >> HP_PC_SHIFT;
  uint64_t tag = number >> HP_RULE_TAG_SHIFT;
  if (!hp_rule_is_cachable(key) || tag == 0 || !hp_lock_try(&cache_lock)) return;
  if (generation == hp_rule_cache.generation && suspensions == 0) {
    if (real_table == NULL || evictions > (real_table->bucket_mask + 1) / 4) grow_locked();
    if (real_table != NULL && place_entry(real_table, number, rule | tag)) evictions++;
  }
  hp_lock_release(&cache_lock);
}

static void flush_locked(void) {
  hp_store_release(&hp_rule_cache.generation, hp_rule_cache.generation + 1);
  if (real_table == NULL) return;
  for (uint64_t i = 0; i < 2 * (real_table->bucket_mask + 1); i++) {
    if (hp_load_relaxed(&real_table->entries[i]) != 0) hp_store_relaxed(&real_table->entries[i], 0);
  }
}

void hp_rule_cache_flush(void) {
  hp_lock_acquire(&cache_lock);
  flush_locked();
  hp_lock_release(&cache_lock);
}

void hp_rule_cache_suspend(void) {
  hp_lock_acquire(&cache_lock);
  suspensions++;
  hp_store_release(&hp_rule_cache.generation, hp_rule_cache.generation + 1);
  __atomic_store_n(&hp_rule_cache.current, HP_RULE_TABLE_EMPTY, __ATOMIC_SEQ_CST);
  hp_lock_release(&cache_lock);
}

void hp_rule_cache_resume(void) {
  hp_lock_acquire(&cache_lock);
  flush_locked();
  if (--suspensions == 0 && real_table != NULL) hp_store_release(&hp_rule_cache.current, real_table);
  hp_lock_release(&cache_lock);
}

size_t hp_rule_cache_bytes(void) { return hp_load_relaxed(&cache_bytes); }
void hp_rule_cache_lock(void) { hp_lock_acquire(&cache_lock); }
void hp_rule_cache_unlock(void) { hp_lock_release(&cache_lock); }
