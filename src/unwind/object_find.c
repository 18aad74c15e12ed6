/* SPDX-License-Identifier: MIT
 * object_find.c - see object_find.h. */
#include "object_find.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "libc_names.h"
#include "object_list.h"

enum { HP_OBJECT_PAGE = 4096, HP_LIBC_WITH_FIND_OBJECT = 35 };

/* glibc 2.35's struct dl_find_object, which older headers have not; the end is as long as on any architecture. */
struct found {
  unsigned long long flags;
  void *map_start, *map_end;
  struct link_map *link_map;
  void *eh_frame_hdr;
  unsigned long long reserved[8];
};

/* _dl_find_object; NULL: this C library has none. A reference to it, even a weak one, would keep the library from loading with
 * an older one: the version counts. */
static int (*loader_answer)(void *, struct found *);

HP_OLD_NAME(dlsym, "2.2.5");

/* At start, since dlsym takes the loader's lock; before control's constructor, after which a sample may come.
 * HP_WITHOUT_DL_FIND_OBJECT: as if this C library were older (tests). */
__attribute__((constructor(101))) static void look_for_loader_answer(void) {
#ifndef HP_WITHOUT_DL_FIND_OBJECT
  if (dlsym == NULL || !hp_libc_is_at_least(HP_LIBC_WITH_FIND_OBJECT)) return;
  loader_answer = (int (*)(void *, struct found *))dlsym(RTLD_DEFAULT, "_dl_find_object");
#endif
}

bool hp_object_find_asks_loader(void) { return loader_answer != NULL; }

/* The loader gives only the segment around the address when the segments of the program leave gaps between them (it maps
 * libraries without, the kernel maps the program); the headers may then lie elsewhere: the kernel says where. */
static void complete_program(struct hp_object *object) {
  const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
  unsigned count = (unsigned)getauxval(AT_PHNUM);
  uintptr_t start = UINTPTR_MAX;
  uintptr_t end = 0;
  if (headers == NULL || getauxval(AT_PHENT) != sizeof(*headers)) return;
  for (unsigned i = 0; i < count; i++) {
    uintptr_t segment = object->load_bias + headers[i].p_vaddr;
    if (headers[i].p_type != PT_LOAD) continue;
    if (segment < start) start = segment;
    if (segment + headers[i].p_memsz > end) end = segment + headers[i].p_memsz;
  }
  start &= ~(uintptr_t)(HP_OBJECT_PAGE - 1);
  end = (end + HP_OBJECT_PAGE - 1) & ~(uintptr_t)(HP_OBJECT_PAGE - 1);
  if (start > object->map_start || end < object->map_end) return; /* somebody else's headers */
  object->map_start = start;
  object->map_end = end;
  object->headers = headers;
  object->header_count = count;
}

bool hp_object_find(uintptr_t address, struct hp_object *out) {
  struct found found;
  if (!hp_object_find_asks_loader()) return hp_object_list_find(address, out);
  if (loader_answer((void *)address, &found) != 0) return false;
  *out = (struct hp_object){.map_start = (uintptr_t)found.map_start,
                            .map_end = (uintptr_t)found.map_end,
                            .eh_frame_hdr = found.eh_frame_hdr,
                            .link_map = found.link_map};
  return true;
}

void hp_object_describe(struct hp_object *object) {
  if (object->name != NULL) return; /* the list gives everything */
  const struct link_map *map = object->link_map;
  object->name = map->l_name != NULL ? map->l_name : "";
  object->load_bias = map->l_addr;
  object->dynamic = map->l_ld;
  if (object->name[0] == 0) complete_program(object);
}

void hp_object_find_suspend(void) {
  if (!hp_object_find_asks_loader()) hp_object_list_suspend();
}

void hp_object_find_after_fork(uint32_t own) {
  if (!hp_object_find_asks_loader()) hp_object_list_after_fork(own);
}

bool hp_object_find_resume(void) { return hp_object_find_asks_loader() || hp_object_list_resume(); }
