/* SPDX-License-Identifier: MIT
 * retention.c - see retention.h. Paths are kept whole, in a ring of keep * kinds entries made at the first periodic dump. If
 * there is no memory for it, nothing is removed. */
#include "retention.h"

#include <string.h>

#include "arena.h"
#include "process.h"
#include "sys.h"

enum { RING_MAX = 65536, PATH_BYTES = 512, SLACK_SECONDS = 2 };

/* A path longer than this is not remembered, so its file stays. Size and time say whether the file there is still ours: by a
 * template without %p other processes write at the same names, and what is theirs may be a dump that is to stay. Time to
 * SLACK_SECONDS, which is what FAT keeps: network file systems may round it when they ask the server again, and a file
 * that is never found ours is never removed. (The inode does not say it: some FUSE file systems number them anew.) */
struct slot {
  char path[PATH_BYTES];
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

static bool is_still_named(const char *path) {
  for (uint64_t i = 0; i < ring_size; i++) {
    if (strcmp(ring[i].path, path) == 0) return true;
  }
  return false;
}

static void fill(struct slot *slot, const char *path) {
  struct stat file;
  size_t n = strlen(path);
  slot->path[0] = 0;
  if (n >= PATH_BYTES || hp_sys_stat_at(path, AT_SYMLINK_NOFOLLOW, &file) != 0) return;
  memcpy(slot->path, path, n + 1);
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
  struct slot old = *slot;
  next_slot++;
  fill(slot, path);
  if (old.path[0] != 0 && !is_still_named(old.path) && is_as_written(&old)) hp_sys_unlink(old.path);
}

void hp_retention_kept(const char *path) {
  for (uint64_t i = 0; ring != NULL && i < ring_size; i++) {
    if (strcmp(ring[i].path, path) == 0) ring[i].path[0] = 0;
  }
}

void hp_retention_forget(void) {
  next_slot = 0;
  for (uint64_t i = 0; ring != NULL && i < ring_size; i++) ring[i].path[0] = 0;
}
