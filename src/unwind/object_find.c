/* SPDX-License-Identifier: MIT
 * object_find.c - see object_find.h. */
#include "object_find.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "object_list.h"

enum { HP_OBJECT_PAGE = 4096 };

/* Weak: the library loads with an older libc. HP_WITHOUT_DL_FIND_OBJECT: as if this one were older (tests). */
extern int _dl_find_object(void *, struct dl_find_object *) __attribute__((weak));

static bool has_loader_answer(void) {
#ifdef HP_WITHOUT_DL_FIND_OBJECT
  return false;
#else
  return &_dl_find_object != NULL;
#endif
}

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
  struct dl_find_object found;
  if (!has_loader_answer()) return hp_object_list_find(address, out);
  if (_dl_find_object((void *)address, &found) != 0) return false;
  *out = (struct hp_object){.map_start = (uintptr_t)found.dlfo_map_start,
                            .map_end = (uintptr_t)found.dlfo_map_end,
                            .eh_frame_hdr = found.dlfo_eh_frame,
                            .link_map = found.dlfo_link_map};
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

void hp_object_find_refresh(void) {
  if (!has_loader_answer()) hp_object_list_refresh();
}

void hp_object_find_suspend(void) {
  if (!has_loader_answer()) hp_object_list_suspend();
}

void hp_object_find_resume(void) {
  if (!has_loader_answer()) hp_object_list_resume();
}
