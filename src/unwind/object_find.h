/* SPDX-License-Identifier: MIT
 * object_find.h - asks the loader which object holds an address, without its lock.
 *
 * _dl_find_object (glibc 2.35) is lock-free and async-signal-safe. Where it is missing, object_list.h stands in.
 * Any thread. errno untouched. */
#ifndef HP_OBJECT_FIND_H
#define HP_OBJECT_FIND_H

#include "compiler.h"

struct hp_object {
  uintptr_t map_start; /* of hp_object_find: of the segment only, when the program's segments leave gaps */
  uintptr_t map_end;
  const void *eh_frame_hdr; /* NULL: none */
  const void *link_map;     /* the loader's own record: identity */
  /* of hp_object_describe: */
  const char *name; /* the loader's string, valid while the object is loaded */
  uintptr_t load_bias;
  const void *dynamic;
  const void *headers; /* its program headers, where they are known without looking; else NULL: see the ELF header */
  unsigned header_count;
};

/* Which object holds the address? What the loader published; nothing of the object itself is touched, which another thread
 * may be unloading. */
bool hp_object_find(uintptr_t address, struct hp_object *out);

/* Does the loader answer that? Else a list is kept (object_list.h). */
bool hp_object_find_asks_loader(void);

/* Completes what hp_object_find gave. Only for an object that cannot go away meanwhile: a frame of it is on the stack. */
void hp_object_describe(struct hp_object *object);

/* Around a dlclose. Nothing to do where the loader answers by itself; elsewhere nothing is found in between, and resume
 * returns whether no other thread is in one. */
void hp_object_find_suspend(void);
bool hp_object_find_resume(void);
/* In a forked child: this thread is in so many of them, and the others are not there. Waits for no lock. */
void hp_object_find_after_fork(uint32_t own);

#endif
