/* SPDX-License-Identifier: MIT
 * live_index.h - from the hash of an address to the number of its record, for one shard of the live table.
 *
 *   chunk, one cache line:  | 15 entries: 8 bits of the hash, 24 bits of number + 1 | how many are used, how many passed |
 *
 * A record is in the chunk of its hash or, where that was full, in the first of those behind it that had room; each full
 * chunk counts those that passed it by, so that a search ends at the first that nobody passed. So an absent address costs one
 * cache line and no record, one that is there costs its record besides (but for one entry in 256), and to take one out nobody
 * else's hash is needed. A chunk's entries are at its front, and are looked at from the last, which is the newest: blocks die
 * young. (Comparing four at a time waits for the write of a moment ago, which is narrower.)
 * Locks, threads   the shard's lock. The memory comes from the private heap. Pure otherwise: it does not know the records. */
#ifndef HP_LIVE_INDEX_H
#define HP_LIVE_INDEX_H

#include "compiler.h"

enum { HP_LIVE_CHUNK_ENTRIES = 15, HP_LIVE_NUMBER_BITS = 24, HP_LIVE_NUMBER_MAX = (1 << HP_LIVE_NUMBER_BITS) - 2 };
enum { HP_LIVE_PASSED_STUCK = UINT16_MAX };

struct hp_live_chunk {
  uint32_t entries[HP_LIVE_CHUNK_ENTRIES];
  uint16_t used, passed; /* one that HP_LIVE_PASSED_STUCK passed keeps that number: searches go on, that is all */
} __attribute__((aligned(HP_CACHE_LINE)));

struct hp_live_index {
  struct hp_live_chunk *chunks; /* NULL: none yet */
  uint32_t chunk_count;
};

/* Where an entry is. */
struct hp_live_place {
  struct hp_live_chunk *chunk; /* NULL: nowhere */
  struct hp_live_chunk *home;  /* of its hash */
  unsigned entry;
};

static inline uint32_t hp_live_index_tag(uint64_t hash) { return (uint32_t)(hash >> 32) << HP_LIVE_NUMBER_BITS; }

/* The bits below the shard's six choose the chunk. */
static inline struct hp_live_chunk *hp_live_index_home(const struct hp_live_index *x, uint64_t hash) {
  return &x->chunks[((hash << 6 >> 32) * x->chunk_count) >> 32];
}

static inline struct hp_live_chunk *hp_live_index_next(const struct hp_live_index *x, struct hp_live_chunk *chunk) {
  return chunk + 1 == x->chunks + x->chunk_count ? x->chunks : chunk + 1;
}

static inline uint32_t hp_live_index_number(const struct hp_live_place *at) {
  return (at->chunk->entries[at->entry] & ((1u << HP_LIVE_NUMBER_BITS) - 1)) - 1;
}

/* The entry whose record is_it says to be the one, asked for those alone that have the hash's tag. */
static inline struct hp_live_place hp_live_index_find(const struct hp_live_index *x, uint64_t hash,
                                                      bool (*is_it)(const void *context, uint32_t number),
                                                      const void *context) {
  const uint32_t tag = hp_live_index_tag(hash);
  struct hp_live_chunk *home = hp_live_index_home(x, hash), *chunk = home;
  for (uint32_t looked_at = 0; looked_at < x->chunk_count; looked_at++) {
    for (unsigned i = chunk->used; i-- > 0;) {
      struct hp_live_place at = {chunk, home, i};
      if (((chunk->entries[i] ^ tag) >> HP_LIVE_NUMBER_BITS) == 0 && is_it(context, hp_live_index_number(&at))) return at;
    }
    if (HP_LIKELY(chunk->passed == 0)) break;
    chunk = hp_live_index_next(x, chunk);
  }
  return (struct hp_live_place){NULL, NULL, 0};
}

/* There must be room: see hp_live_index_room(). number: at most HP_LIVE_NUMBER_MAX. */
static inline void hp_live_index_add(struct hp_live_index *x, uint64_t hash, uint32_t number) {
  struct hp_live_chunk *chunk = hp_live_index_home(x, hash);
  while (HP_UNLIKELY(chunk->used == HP_LIVE_CHUNK_ENTRIES)) {
    if (chunk->passed != HP_LIVE_PASSED_STUCK) chunk->passed++;
    chunk = hp_live_index_next(x, chunk);
  }
  chunk->entries[chunk->used++] = hp_live_index_tag(hash) | (number + 1);
}

static inline void hp_live_index_remove(const struct hp_live_index *x, const struct hp_live_place *at) {
  struct hp_live_chunk *chunk = at->chunk;
  for (struct hp_live_chunk *c = at->home; HP_UNLIKELY(c != chunk); c = hp_live_index_next(x, c)) {
    if (c->passed != HP_LIVE_PASSED_STUCK) c->passed--;
  }
  chunk->entries[at->entry] = chunk->entries[--chunk->used];
}

/* Entries before it is worth growing (four fifths), and before it may not be added to (a full one would be searched whole). */
static inline uint32_t hp_live_index_comfort(const struct hp_live_index *x) { return x->chunk_count * 12; }
static inline uint32_t hp_live_index_room(const struct hp_live_index *x) { return x->chunk_count * 14; }

/* An empty one with comfort for so many entries. False: no memory. */
bool hp_live_index_make(struct hp_live_index *x, uint32_t entries);
void hp_live_index_free(struct hp_live_index *x);

#endif
