/* SPDX-License-Identifier: MIT
 * live_index.c - see live_index.h. */
#include "live_index.h"

#include "heap.h"

bool hp_live_index_make(struct hp_live_index *x, uint32_t entries) {
  x->chunk_count = 1 + entries / hp_live_index_comfort(&(struct hp_live_index){.chunk_count = 1});
  x->chunks = hp_heap_alloc_aligned_zero(HP_CACHE_LINE, x->chunk_count * sizeof *x->chunks);
  return x->chunks != NULL;
}

void hp_live_index_free(struct hp_live_index *x) {
  hp_heap_free(x->chunks);
  *x = (struct hp_live_index){0};
}
