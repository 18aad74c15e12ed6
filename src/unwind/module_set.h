/* SPDX-License-Identifier: MIT
 * module_set.h - which modules a stack belongs to: the loaded ones of some moment, or those that a closed stack passes
 * through (record/stack_table.h).
 *
 * Invariants  a set never changes. Its modules do not overlap (but for the program, which comes last where it does), newest
 *             first. A set that is kept is kept once, whatever stacks share it, and for ever, as its modules are.
 * Locks       the modules' for keeping one; look-ups take none.
 * Memory      8 bytes a module and 16, from the modules' arena. */
#ifndef HP_MODULE_SET_H
#define HP_MODULE_SET_H

#include "arena.h"
#include "compiler.h"

struct hp_module;

struct hp_module_set {
  const struct hp_module_set *next; /* in the chain of its hash */
  uint32_t id;                      /* sets of one id are equal; 0 is nobody's */
  uint32_t count;
  const struct hp_module *modules[];
};

enum {
  HP_MODULE_SET_MAX = 128,         /* modules of one stack */
  HP_MODULE_SET_UNKNOWN = 1,       /* no memory, or too many: a set of none, which nothing comes back to */
  HP_MODULE_SET_LOADED = 1u << 30, /* added to the id of a set of all loaded modules, which is not kept */
};

/* The kept set of these modules, newest first: its id. The modules' lock is held. */
uint32_t hp_module_set_keep_locked(struct hp_arena *arena, const struct hp_module *const *modules, uint32_t count);

/* By an id that hp_module_set_keep_locked gave. Any thread, async-signal-safe. */
const struct hp_module_set *hp_module_set_get(uint32_t id);

/* The module that covers the address, or NULL (so for NULL). Async-signal-safe. */
const struct hp_module *hp_module_set_find(const struct hp_module_set *set, uintptr_t address);

#endif
