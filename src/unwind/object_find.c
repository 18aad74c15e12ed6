/* SPDX-License-Identifier: MIT
 * object_find.c - see object_find.h. */
#include "object_find.h"

#include <dlfcn.h>
#include <link.h>

/* Weak: the library loads with an older libc. */
extern int _dl_find_object(void *, struct dl_find_object *) __attribute__((weak));

bool hp_object_find(uintptr_t address, struct hp_object *out) {
  struct dl_find_object found;
  if (&_dl_find_object == NULL || _dl_find_object((void *)address, &found) != 0) return false;
  const struct link_map *map = found.dlfo_link_map;
  *out = (struct hp_object){.map_start = (uintptr_t)found.dlfo_map_start,
                            .map_end = (uintptr_t)found.dlfo_map_end,
                            .eh_frame_hdr = found.dlfo_eh_frame,
                            .link_map = map,
                            .name = map->l_name != NULL ? map->l_name : "",
                            .load_bias = map->l_addr,
                            .dynamic = map->l_ld};
  return true;
}
