/* SPDX-License-Identifier: MIT
 * modules.h - the loaded objects that were seen on a sampled stack, remembered after they are unloaded.
 *
 * Invariants  a module is never forgotten and never moves; loaded modules do not overlap (but for the program).
 *             The same file loaded again at the same address with the same build id is the same module: it lives again.
 *             Without a build id, its tables must be the same (module_image.h); they are looked at from the second time on,
 *             so the first life stays alone.
 *             A module counts as loaded only after the stacks of whoever was at its place have been closed, and its own
 *             opened (hp_modules_watch): a stack is looked up with a frame of it, hence later.
 * Callers     the unwinder registers (at the first pc in a module, while a frame of it is on the stack, so it is loaded);
 *             the export folder reads.
 * Locks       one, for registering and marking, and held while the watcher closes and opens stacks;
 *             readers walk the list without it.
 * Memory      from an arena of its own; the path and the build id are copied. */
#ifndef HP_MODULES_H
#define HP_MODULES_H

#include "compiler.h"
#include "module_image.h"
#include "module_set.h"

struct hp_module {
  struct hp_module *next; /* older module, or NULL; set before publication */
  uintptr_t map_start;    /* whole object, first to last PT_LOAD, page aligned */
  uintptr_t map_end;
  uintptr_t text_start; /* first to last executable PT_LOAD, page aligned */
  uintptr_t text_end;
  uint64_t text_offset;  /* file offset of text_start */
  uintptr_t load_bias;   /* address = ELF virtual address + bias */
  uint32_t index;        /* 0, 1, 2, ... in order of registration */
  bool is_gone;          /* atomic: not loaded at present */
  uint8_t build_id_size; /* 0: none */
  uint8_t build_id[HP_BUILD_ID_MAX];
  uint64_t fingerprint; /* of a file without a build id that came again; 0: none */
  bool is_executable;   /* the program itself (its path is /proc/self/exe's) */
  bool is_vdso;
  const char *path; /* as the loader knows it; "" for the program */
  /* for this folder: */
  struct hp_cfi_tables tables;
  const void *link_map; /* what the loader knew it by: compared, not followed */
  const void *dynamic;
  const void *eh_frame_hdr;
};

/* Registers the object that covers pc, if any; idempotent. Returns it, or NULL (no object there, or no memory).
 * Sets *out_died when registering found a known module gone. Async-signal-safe but for the modules' lock. */
const struct hp_module *hp_modules_note(uintptr_t pc, bool *out_died);

/* Newest first; walk by ->next. Any thread, async-signal-safe. */
const struct hp_module *hp_modules_first(void);

/* Tests: the module loaded now that covers the address. NULL: none. Async-signal-safe. */
const struct hp_module *hp_modules_find(uintptr_t address);

/* Ask the loader about every module thought alive and mark the ones that have gone. Returns whether any has. */
bool hp_modules_check(void);
/* Number of modules found gone so far. Any thread, async-signal-safe. */
uint32_t hp_modules_epoch(void);

/* Who wants to know, with the lock held: of a module found gone that still counts as loaded; of one that is back and does
 * not yet count as loaded. At start-up. */
struct hp_modules_watcher {
  void (*leaving)(const struct hp_module *module);
  void (*returning)(const struct hp_module *module);
};
/* watcher: kept, not copied. */
void hp_modules_watch(const struct hp_modules_watcher *watcher);

/* For the watcher: which modules a stack of these return addresses belongs to, as a kept set. */
uint32_t hp_modules_set_of_locked(const uintptr_t *pcs, uint32_t depth);
/* Is each address of the stack in the module again that it was in, by that set? A module that is just returning counts. */
bool hp_modules_are_back_locked(uint32_t set, const uintptr_t *pcs, uint32_t depth);
void hp_modules_set_returning_locked(const struct hp_module *module);

/* All modules loaded now, in the arena; NULL: no memory. It is what an open stack belongs to that is found open afterwards, as
 * long as hp_modules_sequence() gives *out_sequence. Async-signal-safe. */
const struct hp_module_set *hp_modules_loaded(struct hp_arena *arena, uint32_t *out_sequence);
/* Grows with each change to what is loaded; odd while one is under way. */
uint32_t hp_modules_sequence(void);

/* Around fork. */
void hp_modules_lock(void);
void hp_modules_unlock(void);

#endif
