/* SPDX-License-Identifier: MIT
 * rule_cache.h - pc -> rule, shared by all threads, read without a lock.
 *
 * One 64-bit word an entry, the pc verified whole: its lower bits are the index, all but the lowest 12 the tag. A reader
 * needs one relaxed load and can never see half an entry. Two arrays, so that two keys of one index have a place each, and
 * the load from the first one waits for one `and` only.
 *
 *   reader      table = hp_rule_table_load() once a walk; looks into first, then second; a miss: read .eh_frame
 *   writer      hp_rule_cache_insert, under a try-lock (a loser does not cache), only if no unload came between
 *   unload      hp_rule_cache_suspend: walks that begin now find an empty table; hp_rule_cache_resume gives the real one
 *               back, emptied if a module has died (a module without a rule here may come and go unnoticed)
 *
 * Why that is exact: a stack that shows a library loaded at reused addresses begins its walk after that library was mapped,
 * hence after the unloading thread suspended the table (both under the loader's lock). See unwinder.c.
 * Invariants  tables are never freed (a reader may be in one); they at most double, so the old ones sum to one new one.
 * Memory      private heap, from the first insert on. Signals: not re-entered by a thread (callers' section). */
#ifndef HP_RULE_CACHE_H
#define HP_RULE_CACHE_H

#include "compiler.h"
#include "rule.h"

struct hp_rule_table {
  uint64_t index_mask;
  uint64_t *first;  /* index_mask + 1 entries; 0: empty */
  uint64_t *second; /* as many; looked into when the first place holds another pc */
};

struct hp_rule_cache {
  struct hp_rule_table *current; /* what walks use: the real one or the empty one */
  uint32_t generation;           /* grows with every flush */
};
extern struct hp_rule_cache hp_rule_cache;
extern struct hp_rule_table hp_rule_table_empty; /* every look-up misses */

static inline const struct hp_rule_table *hp_rule_table_load(void) { return hp_load_acquire(&hp_rule_cache.current); }

static inline bool hp_rule_table_is_empty(const struct hp_rule_table *table) { return table == &hp_rule_table_empty; }

/* The key of the row for the instruction before a return address is the return address; that of an interrupted pc is the
 * next possible one. 0 is no key. */
static inline bool hp_rule_is_cachable(uintptr_t key) { return key >> HP_PC_BITS == 0; }

/* Is this the entry of the key? Empty entries are those of keys below 4096, which are no addresses. */
static inline bool hp_rule_matches(uint64_t entry, uintptr_t key) {
  return (entry & HP_RULE_TAG_MASK) == key >> HP_PC_SHIFT >> HP_RULE_INDEX_BITS;
}
static inline size_t hp_rule_index(uintptr_t key, uint64_t index_mask) { return key >> HP_PC_SHIFT & index_mask; }

/* To be read before the rule is; insert compares. Acquire. */
static inline uint32_t hp_rule_cache_generation(void) { return hp_load_acquire(&hp_rule_cache.generation); }
/* The rule of a key as it was read in that generation; not kept when another thread inserts just now, or after an unload. */
void hp_rule_cache_insert(uintptr_t key, uint64_t rule, uint32_t generation);

/* Forget everything. deaths: hp_modules_epoch() as it was before the call. */
void hp_rule_cache_flush(uint32_t deaths);
/* Nested: walks that begin before the matching resume cache nothing. */
void hp_rule_cache_suspend(void);
/* deaths as above: if it is not that of the last flush, flushes. */
void hp_rule_cache_resume(uint32_t deaths);

/* In a forked child: of the suspensions only `own` have somebody to end them. Waits for no lock. */
void hp_rule_cache_after_fork(uint32_t own);

/* Memory of all tables so far. */
size_t hp_rule_cache_bytes(void);
/* Around fork. */
void hp_rule_cache_lock(void);
void hp_rule_cache_unlock(void);

#endif
