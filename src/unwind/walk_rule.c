/* SPDX-License-Identifier: MIT
 * walk_rule.c - see walk.h: a rule that is not cached. modules.h names the object, cfi.h reads its table, rule.h packs the
 * row. */
#include "code_bytes.h"
#include "modules.h"
#include "object_find.h"
#include "rule_cache.h"
#include "walk.h"

struct hp_walk_counters hp_walk_counters;

/* heapprof's own text; empty until first asked for, and when the unwinder is linked into the program itself. */
static struct {
  uintptr_t start;
  uintptr_t end; /* stored last */
} own_text;

static bool is_own_text(uintptr_t pc) {
  uintptr_t end = hp_load_acquire(&own_text.end);
  if (HP_UNLIKELY(end == 0)) {
    struct hp_object object;
    if (!hp_object_find((uintptr_t)&hp_unwind, &object)) return false;
    hp_object_describe(&object);
    hp_store_relaxed(&own_text.start, object.map_start);
    end = object.name[0] != 0 ? object.map_end : 1;
    hp_store_release(&own_text.end, end);
  }
  return pc < end && pc >= hp_load_relaxed(&own_text.start);
}

/* A function that begins right at a return address was not called into: somebody put it there as the root of a stack made by
 * hand (makecontext does). Unless the last instruction before is a call that never returns. */
static bool is_root_entry(const struct hp_cfi_tables *tables, uintptr_t pc) {
  struct hp_cfi_row row;
  return hp_cfi_find_row(tables, pc, &row) == HP_CFI_FOUND && row.function_start == pc && !hp_code_is_after_call(pc);
}

static uint64_t read_rule_of(const struct hp_module *module, uintptr_t key) {
  uintptr_t address = key - HP_PC_STEP;
  struct hp_cfi_row row;
  if (hp_cfi_find_row(&module->tables, address, &row) != HP_CFI_FOUND) {
    return hp_rule_make_other(is_root_entry(&module->tables, key) ? HP_RULE_ENTRY : HP_RULE_NO_DATA);
  }
  uint64_t rule = hp_rule_from_row(&module->tables, &row, address);
  if (hp_rule_kind(rule) <= HP_RULE_FP && is_own_text(address)) rule |= hp_rule_make(HP_RULE_SP_OWN, 0, 0);
  return rule;
}

uint64_t hp_walk_read_rule(struct hp_walk *walk, uintptr_t key) {
  bool died = false;
  hp_add_relaxed(&hp_walk_counters.rule_misses, 1);
  const struct hp_module *module = hp_modules_note(key - HP_PC_STEP, &died);
  if (died) {
    walk->flags |= HP_UNWIND_MODULES_DIED;
    hp_rule_cache_flush(hp_modules_epoch());
    walk->generation = hp_rule_cache_generation();
  }
  if (module == NULL) return hp_rule_make_other(HP_RULE_NO_OBJECT);
  uint64_t rule = read_rule_of(module, key);
  hp_rule_cache_insert(key, rule, walk->generation);
  return rule;
}

bool hp_unwind_find_function(uintptr_t pc, uintptr_t *out_start, uintptr_t *out_end) {
  struct hp_object object;
  struct hp_module_image image;
  struct hp_cfi_row row;
  if (!hp_object_find_asks_loader() || !hp_object_find(pc, &object)) return false;
  hp_object_describe(&object);
  if (!hp_module_image_read(&object, &image) || hp_cfi_find_row(&image.tables, pc, &row) != HP_CFI_FOUND) return false;
  *out_start = row.function_start;
  *out_end = row.function_end;
  return true;
}
