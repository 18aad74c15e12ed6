/* SPDX-License-Identifier: MIT
 * retention.c - see retention.h. Paths are kept whole, in a ring of keep * kinds entries made at the first periodic dump. If
 * there is no memory for it, or it would be too long, nothing is removed. */
#include "retention.h"

#include <string.h>

#include "arena.h"
#include "process.h"
#include "sys.h"

enum { RING_MAX = 65536, PATH_SPARE_BYTES = 32, SLACK_SECONDS = 2 };

/* Paths grow by a digit now and then: the room for one lasts. Size and time say whether the file there is still ours: by a
 * template without %p other processes write at the same names, and what is theirs may be a dump that is to stay. Time to
 * SLACK_SECONDS, which is what FAT keeps: network file systems may round it when they ask the server again, and a file
 * that is never found ours is never removed. (The inode does not say it: some FUSE file systems number them anew.) */
struct slot {
  char *path; /* NULL or empty: none */
  size_t capacity;
  int64_t bytes, modified_seconds;
};

static struct hp_arena ring_arena;
static struct slot *ring;
static uint64_t ring_size, next_slot;

static bool make_ring(void) {
  if (ring != NULL) return true;
  ring_size = (uint64_t)hp_process.config.keep *
              (unsigned)__builtin_popcount(hp_process.config.kinds | (hp_process.config.peak ? 1u << 30 : 0));
  if (ring_size == 0 || ring_size > RING_MAX) return false;
  ring = hp_arena_alloc(&ring_arena, ring_size * sizeof *ring);
  return ring != NULL;
}

static bool is_of(const struct slot *slot, const char *path) { return slot->path != NULL && strcmp(slot->path, path) == 0; }

static void clear(struct slot *slot) {
  if (slot->path != NULL) slot->path[0] = 0;
}

static bool is_named_elsewhere(const struct slot *slot) {
  for (uint64_t i = 0; i < ring_size; i++) {
    if (&ring[i] != slot && is_of(&ring[i], slot->path)) return true;
  }
  return false;
}

static bool has_room(struct slot *slot, size_t n) {
  if (n <= slot->capacity) return true;
  char *room = hp_arena_alloc(&ring_arena, n + PATH_SPARE_BYTES);
  if (room == NULL) return false;
  slot->path = room;
  slot->capacity = n + PATH_SPARE_BYTES;
  return true;
}

static void fill(struct slot *slot, const char *path) {
  struct stat file;
  size_t n = strlen(path) + 1;
  clear(slot);
  if (hp_sys_stat_at(path, AT_SYMLINK_NOFOLLOW, &file) != 0 || !has_room(slot, n)) return;
  memcpy(slot->path, path, n);
  slot->bytes = file.st_size;
  slot->modified_seconds = file.st_mtim.tv_sec;
}

static bool is_as_written(const struct slot *slot) {
  struct stat file;
  return hp_sys_stat_at(slot->path, AT_SYMLINK_NOFOLLOW, &file) == 0 && file.st_size == slot->bytes &&
         file.st_mtim.tv_sec >= slot->modified_seconds - SLACK_SECONDS &&
         file.st_mtim.tv_sec <= slot->modified_seconds + SLACK_SECONDS;
}

void hp_retention_written(const char *path) {
  if (!make_ring()) return;
  struct slot *slot = &ring[next_slot % ring_size];
  next_slot++;
  bool is_used = slot->path != NULL && slot->path[0] != 0;
  if (is_used && !is_of(slot, path) && !is_named_elsewhere(slot) && is_as_written(slot)) hp_sys_unlink(slot->path);
  fill(slot, path);
}

void hp_retention_kept(const char *path) {
  for (uint64_t i = 0; ring != NULL && i < ring_size; i++) {
    if (is_of(&ring[i], path)) clear(&ring[i]);
  }
}

void hp_retention_forget(void) {
  next_slot = 0;
  for (uint64_t i = 0; ring != NULL && i < ring_size; i++) clear(&ring[i]);
}
