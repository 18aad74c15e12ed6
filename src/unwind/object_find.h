/* SPDX-License-Identifier: MIT
 * object_find.h - asks the loader which object holds an address, without its lock.
 *
 * _dl_find_object (glibc 2.35) is lock-free and async-signal-safe. Where it is missing nothing is found, and stacks consist of
 * their first frames only. Any thread. errno untouched. */
#ifndef HP_OBJECT_FIND_H
#define HP_OBJECT_FIND_H

#include "compiler.h"

struct hp_object {
  uintptr_t map_start; /* the whole object */
  uintptr_t map_end;
  const void *eh_frame_hdr; /* NULL: none */
  const void *link_map;     /* the loader's own record: identity, and the next three */
  const char *name;         /* the loader's string, valid while the object is loaded */
  uintptr_t load_bias;
  const void *dynamic;
  const void *headers; /* its program headers, where they are known without looking; else NULL: see the ELF header */
  unsigned header_count;
};

bool hp_object_find(uintptr_t address, struct hp_object *out);

#endif
