/* SPDX-License-Identifier: MIT
 * object_list.c - see object_list.h. */
#include "object_list.h"

#include <link.h>

#include "heap.h"
#include "lock.h"

enum { HP_OBJECT_LIST_FIRST = 64, HP_OBJECT_LIST_PAGE = 4096 };

static struct hp_lock
    list_lock; /* of writers; not held while the loader is asked, which may wait for a thread that waits for us */
static struct {
  uint32_t sequence;  /* atomic; odd: being changed */
  uint32_t suspended; /* atomic */
  uint32_t count;     /* atomic, as are the next one and, word by word, what it points at */
  struct hp_object *objects;
  uint32_t capacity;          /* writers only */
  unsigned long long changes; /* of the loader's list when this one was taken; writers only */
} list;

struct snapshot {
  struct hp_object *objects;
  uint32_t count;
  uint32_t capacity;
  unsigned long long changes;
};

/* Entries are read and written by words, so that a reader and a writer may meet on them; acquire and release keep the two looks
 * at the sequence number around them. */
static void copy_object(struct hp_object *to, const struct hp_object *from) {
  _Static_assert(sizeof(struct hp_object) % sizeof(uintptr_t) == 0, "copied by words");
  for (size_t i = 0; i < sizeof(*to) / sizeof(uintptr_t); i++) {
    hp_store_release((uintptr_t *)(void *)to + i, hp_load_acquire((const uintptr_t *)(const void *)from + i));
  }
}

bool hp_object_list_find(uintptr_t address, struct hp_object *out) {
  uint32_t sequence = hp_load_acquire(&list.sequence);
  const struct hp_object *objects = hp_load_acquire(&list.objects);
  uint32_t count = hp_load_acquire(&list.count);
  bool found = false;
  if (hp_load_acquire(&list.suspended) != 0 || (sequence & 1) != 0) return false;
  if (hp_load_acquire(&list.sequence) != sequence) return false; /* else objects and count belong together */
  for (uint32_t i = 0; i < count && !found; i++) {
    if (address < hp_load_acquire(&objects[i].map_start) || address >= hp_load_acquire(&objects[i].map_end)) continue;
    copy_object(out, &objects[i]);
    found = true;
  }
  return found && hp_load_relaxed(&list.sequence) == sequence;
}

static bool describe(const struct dl_phdr_info *info, struct hp_object *out) {
  uintptr_t start = UINTPTR_MAX;
  uintptr_t end = 0;
  *out = (struct hp_object){.link_map = info->dlpi_phdr,
                            .name = info->dlpi_name != NULL ? info->dlpi_name : "",
                            .load_bias = info->dlpi_addr,
                            .headers = info->dlpi_phdr,
                            .header_count = info->dlpi_phnum};
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    uintptr_t at = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_DYNAMIC) out->dynamic = (const void *)at;
    if (header->p_type == PT_GNU_EH_FRAME) out->eh_frame_hdr = (const void *)at;
    if (header->p_type != PT_LOAD) continue;
    if (at < start) start = at;
    if (at + header->p_memsz > end) end = at + header->p_memsz;
  }
  out->map_start = start & ~(uintptr_t)(HP_OBJECT_LIST_PAGE - 1);
  out->map_end = (end + HP_OBJECT_LIST_PAGE - 1) & ~(uintptr_t)(HP_OBJECT_LIST_PAGE - 1);
  return start < end;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *to) {
  struct snapshot *snapshot = to;
  struct hp_object object;
  (void)size;
  snapshot->changes = info->dlpi_adds + info->dlpi_subs;
  if (!describe(info, &object)) return 0;
  if (snapshot->count == snapshot->capacity) {
    uint32_t capacity = snapshot->capacity == 0 ? HP_OBJECT_LIST_FIRST : 2 * snapshot->capacity;
    struct hp_object *objects = hp_heap_alloc(capacity * sizeof(*objects));
    if (objects == NULL) return 1;
    if (snapshot->count > 0) __builtin_memcpy(objects, snapshot->objects, snapshot->count * sizeof(*objects));
    hp_heap_free(snapshot->objects);
    snapshot->objects = objects;
    snapshot->capacity = capacity;
  }
  snapshot->objects[snapshot->count++] = object;
  return 0;
}

static bool make_room_locked(uint32_t count) {
  if (count <= list.capacity) return true;
  struct hp_object *objects = hp_heap_alloc((size_t)2 * count * sizeof(*objects));
  if (objects == NULL) return false;
  list.capacity = 2 * count;
  hp_store_release(&list.objects, objects); /* readers may still be in the old one */
  return true;
}

void hp_object_list_refresh(void) {
  struct snapshot snapshot = {.objects = NULL};
  dl_iterate_phdr(add_object, &snapshot);
  hp_lock_acquire(&list_lock);
  if (snapshot.changes >= list.changes) { /* else another thread was later, and faster */
    hp_store_relaxed(&list.sequence, list.sequence + 1);
    hp_store_release(&list.count, 0);
    if (make_room_locked(snapshot.count)) {
      for (uint32_t i = 0; i < snapshot.count; i++) copy_object(&list.objects[i], &snapshot.objects[i]);
      hp_store_release(&list.count, snapshot.count);
      list.changes = snapshot.changes;
    }
    hp_store_release(&list.sequence, list.sequence + 1);
  }
  hp_lock_release(&list_lock);
  hp_heap_free(snapshot.objects);
}

void hp_object_list_suspend(void) { __atomic_fetch_add(&list.suspended, 1, __ATOMIC_SEQ_CST); }

void hp_object_list_resume(void) {
  hp_object_list_refresh();
  __atomic_fetch_sub(&list.suspended, 1, __ATOMIC_RELEASE);
}
