/* SPDX-License-Identifier: MIT
 * remembered.c - see remembered.h. The pool is a hash table of records by thread pointer: entries are added with a
 * compare-and-swap and never removed. */
#include "remembered.h"

#include "arch.h"
#include "hash.h"
#include "heap.h"

enum { HP_REMEMBERED_PROBES_MAX = 8 };

__thread struct hp_remembered_own hp_remembered_tls HP_TLS;

static struct hp_remembered *pool[HP_REMEMBERED_THREADS_MAX]; /* atomic; complete before published */

static struct hp_remembered *create(uintptr_t owner) {
  struct hp_remembered *record = hp_heap_alloc(sizeof(*record));
  if (record == NULL) return NULL;
  record->owner = owner;
  record->reuses = 0;
  record->bad_walks_max = 1;
  hp_remembered_begin(record, 0);
  hp_remembered_end(record);
  record->is_due = true;
  return record;
}

void hp_remembered_claim(struct hp_remembered_own *own) {
  uintptr_t owner = hp_arch_thread_pointer();
  size_t first = hp_hash_mix(owner) % HP_REMEMBERED_THREADS_MAX;
  struct hp_remembered *mine = NULL;
  for (size_t i = 0; i < HP_REMEMBERED_PROBES_MAX && own->record == NULL; i++) {
    struct hp_remembered **place = &pool[(first + i) % HP_REMEMBERED_THREADS_MAX];
    struct hp_remembered *there = hp_load_acquire(place);
    if (there == NULL) {
      if (mine == NULL) mine = create(owner);
      if (mine == NULL) return;
      if (__atomic_compare_exchange_n(place, &there, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        own->record = mine;
        return;
      }
    }
    if (there->owner == owner) own->record = there;
  }
  hp_heap_free(mine);
}

void hp_remembered_begin(struct hp_remembered *record, uint32_t generation) {
  record->generation = generation;
  record->count = 0;
  record->bad_walks = 0;
  record->is_due = false;
}

void hp_remembered_end(struct hp_remembered *record) {
  record->frames[record->count] = (struct hp_remembered_frame){.sp = UINTPTR_MAX};
}

void hp_remembered_get_stats(uint64_t *out_reuses, size_t *out_bytes) {
  *out_reuses = 0;
  *out_bytes = 0;
  for (size_t i = 0; i < HP_REMEMBERED_THREADS_MAX; i++) {
    const struct hp_remembered *record = hp_load_acquire(&pool[i]);
    if (record == NULL) continue;
    *out_reuses += hp_load_relaxed(&record->reuses);
    *out_bytes += sizeof(*record);
  }
}
