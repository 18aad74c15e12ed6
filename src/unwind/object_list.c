/* SPDX-License-Identifier: MIT
 * object_list.c - see object_list.h. */
#include "object_list.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "heap.h"
#include "lock.h"
#include "stack_bounds.h"

enum { HP_OBJECT_LIST_FIRST = 64, HP_OBJECT_LIST_MAX = 1 << 16, HP_OBJECT_LIST_PAGE = 4096 };

static struct hp_lock list_lock; /* of who makes the list; readers try it */
static struct {
  uint32_t sequence;  /* atomic; odd: being changed */
  uint32_t suspended; /* atomic */
  uint32_t count;     /* atomic, as are the next one and, word by word, what it points at */
  struct hp_object *objects;
  const struct link_map *last, *before_last; /* atomic; of the chain, as far as it is in the list. NULL: to be made anew */
  uint32_t capacity;                         /* under the lock */
} list;

/* ---- the loader's chain ---- */

static bool is_readable(const void *at) { return hp_stack_probe((uintptr_t)at); }

static const ElfW(Phdr) * program_headers(unsigned *out_count) {
  *out_count = (unsigned)getauxval(AT_PHNUM);
  return getauxval(AT_PHENT) == sizeof(ElfW(Phdr)) ? (const ElfW(Phdr) *)getauxval(AT_PHDR) : NULL;
}

/* Where the program's dynamic section says it is. NULL: it does not. */
static const struct r_debug *find_chain(void) {
  unsigned count;
  const ElfW(Phdr) *headers = program_headers(&count);
  const ElfW(Phdr) *dynamic = NULL;
  uintptr_t bias = 0;
  for (unsigned i = 0; headers != NULL && i < count; i++) {
    if (headers[i].p_type == PT_PHDR) bias = (uintptr_t)headers - headers[i].p_vaddr;
    if (headers[i].p_type == PT_DYNAMIC) dynamic = &headers[i];
  }
  if (dynamic == NULL) return NULL;
  for (const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(bias + dynamic->p_vaddr); entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_DEBUG) return (const struct r_debug *)entry->d_un.d_ptr;
  }
  return NULL;
}

/* One object's record. It may be freed under our hands (no_sanitize: on purpose), so: is it in the chain behind `before`? */
__attribute__((no_sanitize("address", "thread"), noinline)) static bool read_link(const struct link_map *map,
                                                                                  const struct link_map *before,
                                                                                  struct link_map *out) {
  if (!is_readable(map) || !is_readable(&map->l_prev)) return false;
  out->l_addr = map->l_addr;
  out->l_name = map->l_name;
  out->l_ld = map->l_ld;
  out->l_next = hp_load_acquire(&map->l_next);
  out->l_prev = hp_load_acquire(&map->l_prev);
  return out->l_prev == before;
}

/* ---- one object ---- */

static bool find_headers(const struct link_map *map, bool is_program, struct hp_object *out) {
  if (is_program) {
    out->headers = program_headers(&out->header_count);
    return out->headers != NULL;
  }
  const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)map->l_addr;
  if (!is_readable(elf) || __builtin_memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (elf->e_phentsize != sizeof(ElfW(Phdr)) || elf->e_phoff > HP_OBJECT_LIST_PAGE ||
      elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) > HP_OBJECT_LIST_PAGE) {
    return false;
  }
  out->headers = (const char *)elf + elf->e_phoff;
  out->header_count = elf->e_phnum;
  return true;
}

static bool describe(const void *identity, const struct link_map *map, bool is_program, struct hp_object *out) {
  uintptr_t start = UINTPTR_MAX;
  uintptr_t end = 0;
  *out = (struct hp_object){
      .link_map = identity, .name = map->l_name != NULL ? map->l_name : "", .load_bias = map->l_addr, .dynamic = map->l_ld};
  if (!find_headers(map, is_program, out)) return false;
  const ElfW(Phdr) *headers = out->headers;
  for (unsigned i = 0; i < out->header_count; i++) {
    uintptr_t at = map->l_addr + headers[i].p_vaddr;
    if (headers[i].p_type == PT_GNU_EH_FRAME) out->eh_frame_hdr = (const void *)at;
    if (headers[i].p_type != PT_LOAD) continue;
    if (at < start) start = at;
    if (at + headers[i].p_memsz > end) end = at + headers[i].p_memsz;
  }
  out->map_start = start & ~(uintptr_t)(HP_OBJECT_LIST_PAGE - 1);
  out->map_end = (end + HP_OBJECT_LIST_PAGE - 1) & ~(uintptr_t)(HP_OBJECT_LIST_PAGE - 1);
  return start < end;
}

/* ---- the list ---- */

/* Entries are read and written by words, so that a reader and a writer may meet on them; acquire and release keep the two looks
 * at the sequence number around them. */
static void copy_object(struct hp_object *to, const struct hp_object *from) {
  _Static_assert(sizeof(struct hp_object) % sizeof(uintptr_t) == 0, "copied by words");
  for (size_t i = 0; i < sizeof(*to) / sizeof(uintptr_t); i++) {
    hp_store_release((uintptr_t *)(void *)to + i, hp_load_acquire((const uintptr_t *)(const void *)from + i));
  }
}

static bool make_room_locked(void) {
  if (list.count < list.capacity) return true;
  uint32_t capacity = list.capacity == 0 ? HP_OBJECT_LIST_FIRST : 2 * list.capacity;
  struct hp_object *objects = hp_heap_alloc(capacity * sizeof(*objects));
  if (objects == NULL) return false;
  if (list.count > 0) __builtin_memcpy(objects, list.objects, list.count * sizeof(*objects));
  list.capacity = capacity;
  hp_store_release(&list.objects, objects); /* readers may still be in the old one */
  return true;
}

static void forget_locked(void) {
  hp_store_release(&list.count, 0);
  hp_store_release(&list.last, NULL);
  hp_store_release(&list.before_last, NULL);
}

static void extend_locked(const struct r_debug *debug) {
  const struct link_map *last = list.last;
  struct link_map link;
  if (last != NULL && !read_link(last, list.before_last, &link)) {
    forget_locked();
    last = NULL;
  }
  const struct link_map *map = last == NULL ? debug->r_map : link.l_next;
  while (map != NULL && read_link(map, last, &link) && list.count < HP_OBJECT_LIST_MAX && make_room_locked()) {
    struct hp_object object;
    if (describe(map, &link, last == NULL, &object)) {
      copy_object(&list.objects[list.count], &object);
      hp_store_release(&list.count, list.count + 1);
    }
    hp_store_release(&list.before_last, last);
    hp_store_release(&list.last, map);
    last = map;
    map = link.l_next;
  }
}

static void begin_change_locked(void) { hp_store_relaxed(&list.sequence, list.sequence + 1); }
static void end_change_locked(void) { hp_store_release(&list.sequence, list.sequence + 1); }

/* Another thread at it: without it this time. */
static void extend(const struct r_debug *debug) {
  if (!hp_lock_try(&list_lock)) return;
  begin_change_locked();
  extend_locked(debug);
  end_change_locked();
  hp_lock_release(&list_lock);
}

static const struct r_debug *chain(void) {
  static const struct r_debug *debug; /* atomic */
  if (hp_load_relaxed(&debug) == NULL) hp_store_relaxed(&debug, find_chain());
  return hp_load_relaxed(&debug);
}

/* Has the chain grown, or lost what we knew as its end? */
static bool is_behind(void) {
  const struct link_map *last = hp_load_acquire(&list.last);
  struct link_map link;
  return last == NULL || !read_link(last, hp_load_acquire(&list.before_last), &link) || link.l_next != NULL;
}

bool hp_object_list_find(uintptr_t address, struct hp_object *out) {
  const struct r_debug *debug = chain();
  bool found = false;
  if (hp_load_acquire(&list.suspended) != 0 || debug == NULL) return false;
  if (hp_load_acquire(&debug->r_state) == RT_CONSISTENT && is_behind()) extend(debug);
  uint32_t sequence = hp_load_acquire(&list.sequence);
  const struct hp_object *objects = hp_load_acquire(&list.objects);
  uint32_t count = hp_load_acquire(&list.count);
  if ((sequence & 1) != 0 || hp_load_acquire(&list.sequence) != sequence) return false;
  for (uint32_t i = 0; i < count && !found; i++) { /* objects and count belong together */
    if (address < hp_load_acquire(&objects[i].map_start) || address >= hp_load_acquire(&objects[i].map_end)) continue;
    copy_object(out, &objects[i]);
    found = true;
  }
  return found && hp_load_relaxed(&list.sequence) == sequence;
}

void hp_object_list_suspend(void) { __atomic_fetch_add(&list.suspended, 1, __ATOMIC_SEQ_CST); }

/* With the loader's lock: nothing comes or goes. Ours is never held by somebody who waits for the loader's. */
static int make_anew(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)info;
  (void)size;
  (void)unused;
  hp_lock_acquire(&list_lock);
  begin_change_locked();
  forget_locked();
  if (chain() != NULL) extend_locked(chain());
  end_change_locked();
  hp_lock_release(&list_lock);
  return 1; /* once is enough */
}

bool hp_object_list_resume(void) {
  dl_iterate_phdr(make_anew, NULL);
  return __atomic_sub_fetch(&list.suspended, 1, __ATOMIC_ACQ_REL) == 0;
}

void hp_object_list_after_fork(uint32_t own) {
  if (hp_load_relaxed(&list.suspended) == own || !hp_lock_try(&list_lock)) return;
  begin_change_locked();
  forget_locked(); /* it is made again when asked; dl_iterate_phdr would wait for who is not here */
  end_change_locked();
  hp_store_release(&list.suspended, own);
  hp_lock_release(&list_lock);
}

void hp_object_list_lock(void) { hp_lock_acquire(&list_lock); }
void hp_object_list_unlock(void) { hp_lock_release(&list_lock); }
