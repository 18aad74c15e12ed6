/* SPDX-License-Identifier: MIT
 * modules.h - the loaded objects that were seen on a sampled stack, remembered after they are unloaded.
 *
 * Invariants  a module is never forgotten and never moves; alive modules do not overlap. `died` is 0 while it is loaded,
 * else the epoch at which it was found gone; epochs count death events from 1. A stack that was closed at epoch E
 *             (record/stack_table.h) belongs to the modules with born < E <= died (or died == 0), the newest of them.
 *             The same file loaded again at the same address with the same build id is the same module: it lives again.
 * Callers     the unwinder registers (at the first pc in a module, while a frame of it is on the stack, so it is loaded);
 *             the export folder reads.
 * Locks       one, rank HP_RANK_MODULES, for registering and marking; readers walk the list without it.
 * Memory      from an arena of its own; the path and the build id are copied. */
#ifndef HP_MODULES_H
#define HP_MODULES_H

#include "compiler.h"
#include "module_image.h"

struct hp_module {
  struct hp_module *next; /* older module, or NULL; set before publication */
  uintptr_t map_start;    /* whole object, first to last PT_LOAD, page aligned */
  uintptr_t map_end;
  uintptr_t text_start; /* first to last executable PT_LOAD, page aligned */
  uintptr_t text_end;
  uint64_t text_offset;  /* file offset of text_start */
  uintptr_t load_bias;   /* address = ELF virtual address + bias */
  uint32_t index;        /* 0, 1, 2, ... in order of registration */
  uint32_t born;         /* deaths epoch when registered */
  uint32_t died;         /* atomic; 0: loaded */
  uint8_t build_id_size; /* 0: none */
  uint8_t build_id[HP_BUILD_ID_MAX];
  bool is_executable; /* the program itself (its path is /proc/self/exe's) */
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

/* Newest first; walk by ->next. */
const struct hp_module *hp_modules_first(void);

/* The module that covered pc for a stack closed at `epoch` (0: an open stack, modules loaded now). NULL: none. */
const struct hp_module *hp_modules_find(uintptr_t pc, uint32_t epoch);

/* Ask the loader about every module thought alive and mark the ones that have gone. Returns the new epoch when any has,
 * else 0. */
uint32_t hp_modules_check(void);
/* The latest epoch (number of death events so far). */
uint32_t hp_modules_epoch(void);

void hp_modules_lock(void);
void hp_modules_unlock(void);

#endif
