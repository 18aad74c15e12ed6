/* SPDX-License-Identifier: MIT
 * repeats.c - see repeats.h. */
#include "repeats.h"

#include <string.h>

#include "heap.h"
#include "remembered.h"

static uint32_t thread_count; /* atomic: threads that have them */

struct hp_repeats *hp_repeats_create(void) {
  if (hp_add_relaxed(&thread_count, 1) >= HP_REPEATS_THREADS_MAX) {
    hp_store_relaxed(&thread_count, HP_REPEATS_THREADS_MAX);
    return NULL;
  }
  struct hp_repeats *repeats = hp_heap_alloc(sizeof *repeats);
  if (repeats == NULL) return NULL;
  for (size_t i = 0; i < HP_REPEATS_ENTRIES; i++) {
    struct hp_repeat *entry = &repeats->entries[i];
    entry->pc = 0;
    entry->hits = entry->misses = 0;
    entry->misses_max = 1;
  }
  return repeats;
}

void hp_repeat_fill(struct hp_repeat *entry, const struct hp_remembered *record) {
  entry->misses = 0;
  if (entry->misses_max < HP_REPEATS_MISSES_MAX) entry->misses_max *= 2;
  bool is_whole = record->count != 0 && record->whole_from == 0 && record->reported_count != 0;
  if (!is_whole || record->slot_count > HP_REPEATS_SLOTS_MAX || record->reported_count > HP_REPEATS_FRAMES_MAX) return;
  const struct hp_remembered_frame *leaf = &record->frames[0];
  entry->pc = leaf->key;
  entry->sp = leaf->sp;
  entry->fp = leaf->fp;
  entry->is_fp_live = record->is_fp_live[0];
  entry->generation = record->generation;
  entry->slot_count = record->slot_count;
  entry->frame_count = record->reported_count;
  entry->memo = (struct hp_memo){0};
  entry->sum = record->reported_sum[0];
  memcpy(entry->slots, record->slots, record->slot_count * sizeof entry->slots[0]);
  memcpy(entry->frames, record->reported, record->reported_count * sizeof entry->frames[0]);
}
