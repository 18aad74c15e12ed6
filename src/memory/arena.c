/* SPDX-License-Identifier: MIT
 * arena.c - see arena.h. Chunks are a header and the bytes behind it. */
#include "arena.h"

#include <string.h>
#include <sys/mman.h>

#include "budget.h"
#include "sys.h"

enum { ARENA_ALIGN = 16, ARENA_CHUNK_BYTES = 256 * 1024, ARENA_PAGE = 4096 };

struct hp_arena_chunk {
  struct hp_arena_chunk *next;
  size_t bytes; /* of the mapping */
  size_t used;  /* header included */
  size_t unused_;
};

static size_t whole_pages(size_t bytes) { return (bytes + ARENA_PAGE - 1) & ~(size_t)(ARENA_PAGE - 1); }

static size_t room_in(const struct hp_arena_chunk *chunk) { return chunk == NULL ? 0 : chunk->bytes - chunk->used; }

/* The one that has more room left is the next to be taken from. */
static void link_chunk(struct hp_arena *arena, struct hp_arena_chunk *chunk, size_t need) {
  struct hp_arena_chunk **place = &arena->chunks;
  if (room_in(arena->chunks) > chunk->bytes - need) place = &arena->chunks->next;
  chunk->next = *place;
  *place = chunk;
}

/* A chunk with room for `need` bytes, header included. Near the ceiling no more than these. */
static struct hp_arena_chunk *map_chunk(struct hp_arena *arena, size_t need) {
  size_t bytes = arena->chunk_bytes != 0 ? arena->chunk_bytes : ARENA_CHUNK_BYTES;
  bytes = whole_pages(bytes < need ? need : bytes);
  if (!hp_memory_reserve(bytes)) {
    size_t least = whole_pages(need);
    if (least == bytes || !hp_memory_reserve(least)) return NULL;
    bytes = least;
  }
  struct hp_arena_chunk *chunk = hp_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (hp_sys_failed(chunk)) {
    hp_memory_release(bytes);
    return NULL;
  }
  chunk->bytes = bytes;
  chunk->used = sizeof *chunk;
  link_chunk(arena, chunk, need);
  arena->mapped_bytes += bytes;
  return chunk;
}

void *hp_arena_alloc(struct hp_arena *arena, size_t size) {
  if (size > (size_t)1 << 40) return NULL;
  size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
  struct hp_arena_chunk *chunk = arena->chunks;
  if (chunk == NULL || room_in(chunk) < size) {
    chunk = map_chunk(arena, size + sizeof *chunk);
    if (chunk == NULL) return NULL;
  }
  void *ptr = (char *)chunk + chunk->used;
  chunk->used += size;
  return ptr;
}

char *hp_arena_copy(struct hp_arena *arena, const char *bytes, size_t n) {
  char *copy = hp_arena_alloc(arena, n + 1);
  if (copy != NULL) {
    memcpy(copy, bytes, n);
    copy[n] = 0;
  }
  return copy;
}

void hp_arena_reset(struct hp_arena *arena) {
  struct hp_arena_chunk *chunk = arena->chunks;
  arena->chunks = NULL;
  arena->mapped_bytes = 0;
  while (chunk != NULL) {
    struct hp_arena_chunk *next = chunk->next;
    size_t bytes = chunk->bytes;
    hp_sys_munmap(chunk, bytes);
    hp_memory_release(bytes);
    chunk = next;
  }
}

void *hp_arena_zalloc(void *opaque, unsigned items, unsigned size) { return hp_arena_alloc(opaque, (size_t)items * size); }

void hp_arena_zfree(void *opaque, void *ptr) {
  (void)opaque;
  (void)ptr;
}
