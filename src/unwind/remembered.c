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

static void renew(struct hp_remembered *record) {
  hp_remembered_begin(record, 0);
  hp_remembered_end(record);
  record->is_due = true;
  for (size_t i = 0; record->repeats != NULL && i < HP_REPEATS_ENTRIES; i++) record->repeats->entries[i].pc = 0;
}

static struct hp_remembered *create(uintptr_t owner) {
  struct hp_remembered *record = hp_heap_alloc(sizeof(*record));
  if (record == NULL) return NULL;
  record->owner = owner;
  record->reuses = 0;
  record->repeats = NULL;
  record->walks = 0;
  record->bad_walks_max = 1;
  renew(record);
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
    if (there->owner == owner) {
      renew(there);
      own->record = there;
    }
  }
  hp_heap_free(mine);
}

void hp_remembered_begin(struct hp_remembered *record, uint32_t generation) {
  record->generation = generation;
  record->count = 0;
  record->good_walks = record->bad_walks = 0;
  record->is_due = false;
}

void hp_remembered_forget(void) {
  if (hp_remembered_tls.record != NULL) renew(hp_remembered_tls.record);
}

static uintptr_t cfa_of(const struct hp_remembered_frame *frame) { return frame->sp + frame->cfa_distance; }

/* Does the step lead to the next entry, by slots that hold what it says? (A signed return address is kept as it stands.) */
HP_READS_STACK static bool is_linked(const struct hp_remembered_frame *frame) {
  const struct hp_remembered_frame *next = frame + 1;
  if (frame->cfa_distance == 0 || next->sp != cfa_of(frame)) return false;
  if (hp_arch_strip_pc(*(const uintptr_t *)HP_RA_SLOT(cfa_of(frame), frame->fp_words)) != next->key) return false;
  return frame->fp_words != 0 || next->fp == frame->fp;
}

static void add_slot(struct hp_remembered *record, uintptr_t address, uintptr_t held) {
  record->slots[record->slot_count++] = (struct hp_stack_slot){.at = (const uintptr_t *)address, .held = held};
}

/* From the root: what a step loads is dead where the next frame's is. */
static void find_live_fps(struct hp_remembered *record) {
  record->is_fp_live[record->count - 1] = false;
  for (uint32_t i = record->count - 1; i-- > record->whole_from;) {
    const struct hp_remembered_frame *frame = &record->frames[i];
    record->is_fp_live[i] = frame->uses_fp || (frame->fp_words == 0 && record->is_fp_live[i + 1]);
  }
}

HP_READS_STACK static void list_slots(struct hp_remembered *record) {
  for (uint32_t i = record->whole_from; i < record->count; i++) {
    const struct hp_remembered_frame *frame = &record->frames[i];
    record->first_slot[i] = (uint16_t)record->slot_count;
    record->first_reported[i] = (uint16_t)record->reported_count;
    record->reported[record->reported_count] = frame->key;
    record->reported_count += frame->is_reported;
    if (frame->is_end) continue;
    uintptr_t cfa = cfa_of(frame);
    uintptr_t return_slot = HP_RA_SLOT(cfa, frame->fp_words);
    add_slot(record, return_slot, *(const uintptr_t *)return_slot);
    if (frame->fp_words != 0 && record->is_fp_live[i + 1])
      add_slot(record, cfa - frame->fp_words * sizeof(uintptr_t), frame[1].fp);
  }
}

static void sum_reported(struct hp_remembered *record) {
  uint64_t sum = 0;
  for (uint32_t behind = 0; behind < record->reported_count; behind++) {
    uint32_t i = record->reported_count - 1 - behind;
    sum += hp_hash_sum(&record->reported[i], 1, behind);
    record->reported_sum[i] = sum;
  }
}

void hp_remembered_end(struct hp_remembered *record) {
  uint32_t n = record->count;
  record->frames[n] = (struct hp_remembered_frame){.sp = UINTPTR_MAX};
  record->slot_count = 0;
  record->reported_count = 0;
  record->whole_from = n;
  if (n == 0 || !record->frames[n - 1].is_end) return;
  record->whole_from = n - 1;
  while (record->whole_from > 0 && is_linked(&record->frames[record->whole_from - 1])) record->whole_from--;
  find_live_fps(record);
  list_slots(record);
  sum_reported(record);
}

void hp_remembered_get_stats(uint64_t *out_reuses, size_t *out_bytes) {
  *out_reuses = 0;
  *out_bytes = 0;
  for (size_t i = 0; i < HP_REMEMBERED_THREADS_MAX; i++) {
    const struct hp_remembered *record = hp_load_acquire(&pool[i]);
    if (record == NULL) continue;
    *out_reuses += hp_load_relaxed(&record->reuses);
    *out_bytes += sizeof(*record) + (hp_load_relaxed(&record->repeats) != NULL ? sizeof(struct hp_repeats) : 0);
  }
}
