/* SPDX-License-Identifier: MIT
 * location_table.h - the distinct frames of a snapshot: a frame is an address (return address minus one) in a module,
 * or a pseudo frame, which is only a name.
 *
 * Invariants  frames are numbered 0, 1, 2, ... as they are first met; the pseudo frames are the first
 *             HP_PSEUDO_FRAMES. Which of them the file gets, and under which id, the encoder decides later (a frame may
 *             be met only at a leaf that is left out).
 * Callers     pprof.c. Signals: async-signal-safe. */
#ifndef HP_LOCATION_TABLE_H
#define HP_LOCATION_TABLE_H

#include "modules.h"
#include "pair_map.h"

enum { HP_PSEUDO_NO_STACK, HP_PSEUDO_TRUNCATED, HP_PSEUDO_STACK_TABLE_FULL, HP_PSEUDO_FRAMES };
#define HP_FRAME_NONE UINT32_MAX

struct hp_frame {
  uint64_t address;               /* 0: a pseudo frame */
  const struct hp_module *module; /* NULL: in none (JIT code), or a pseudo frame */
  const char *name;               /* NULL: unknown */
  uint32_t location_id;           /* in the file; 0: not used so far */
  bool is_near_leaf;              /* in some row: its name decides whether it is left out */
  uint32_t function_id;           /* 0: none */
};

enum { HP_RECENT_MODULES = 8 };

struct hp_location_table {
  struct hp_arena *arena;
  struct hp_frame *frames;
  uint32_t count;
  uint32_t capacity;
  bool has_sets;                          /* the stacks are not all of one set: addresses may be in several modules */
  struct hp_pair_map by_pc;               /* (pc, set) -> number + 1 */
  struct hp_pair_map by_address;          /* (address, module index + 1) -> number + 1; only if has_sets */
  const struct hp_module_set *recent_set; /* which of these: */
  const struct hp_module *recent[HP_RECENT_MODULES]; /* the last answers, latest first */
};

/* Nothing but the pseudo frames. false: no memory. */
bool hp_location_table_init(struct hp_location_table *table, struct hp_arena *arena, bool has_sets);

/* The frame of return address pc in a stack of these modules. HP_FRAME_NONE: no memory. pc > 1. */
uint32_t hp_location_table_add(struct hp_location_table *table, uintptr_t pc, const struct hp_module_set *modules);

#endif
