/* SPDX-License-Identifier: MIT
 * mapping_table.h - the modules a profile speaks of, numbered 1, 2, 3, ... in the order of their first use; the program is
 * number 1 whether it is used or not.
 *
 * Invariants  two mappings of one file do not overlap (readers refuse that), though a library that was unloaded and loaded
 *             again may well lie where it lay: the same build at an overlapping place is the same mapping, another build of
 *             the same path is moved, in the profile only, to where no user address can be. `shift` is what to add to an
 *             address of the module to get its address in the profile.
 * Callers     location_table, pprof.c. Signals: async-signal-safe, but for hp_modules_note when the program was never
 *             sampled (modules.h). */
#ifndef HP_MAPPING_TABLE_H
#define HP_MAPPING_TABLE_H

#include "modules.h"
#include "pair_map.h"
#include "string_interner.h"

struct hp_mapping {
  uint64_t start;
  uint64_t limit;
  uint64_t offset;
  uint32_t file; /* string numbers */
  uint32_t build_id;
};

/* Where a module went. */
struct hp_module_place {
  uint32_t mapping; /* number, 0: no memory */
  uint64_t shift;
};

struct hp_mapping_table {
  struct hp_arena *arena;
  struct hp_string_interner *strings;
  const char *executable;
  struct hp_mapping *mappings; /* by number - 1 */
  uint32_t count;
  uint32_t capacity;
  uint64_t moved_end;        /* where the next moved mapping begins */
  struct hp_pair_map places; /* module index -> 1 + index into place_list */
  struct hp_module_place *place_list;
  uint32_t place_count;
  uint32_t place_capacity;
};

/* Empty but for the program. false: no memory. */
bool hp_mapping_table_init(struct hp_mapping_table *table, struct hp_arena *arena, struct hp_string_interner *strings,
                           const char *executable);

/* The place of a module, made at its first use. */
struct hp_module_place hp_mapping_table_use(struct hp_mapping_table *table, const struct hp_module *module);

#endif
