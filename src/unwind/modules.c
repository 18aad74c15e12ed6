/* SPDX-License-Identifier: MIT
 * modules.c - see modules.h. A list that only grows at its head: readers need no lock. */
#include "modules.h"

#include <string.h>
#include <sys/auxv.h>

#include "arena.h"
#include "lock.h"
#include "object_find.h"
#include "thread_state.h"

enum { HP_MODULE_PATH_MAX = 4096 };

static struct hp_lock modules_lock;
/* Not the private heap: the executable is registered by every dump, in a handler too, and in programs that never sample. */
static struct hp_arena module_arena = {.chunk_bytes = 16 * 1024};
static struct hp_module *newest; /* release-stored by the holder of the lock, acquire-loaded by readers */
static uint32_t deaths;          /* written under the lock */
static uint32_t sequence;        /* written under the lock */
static uint32_t registered;      /* under the lock */
static const struct hp_modules_watcher *watcher;
static const struct hp_module *returning; /* under the lock */

void hp_modules_lock(void) { hp_lock_acquire(&modules_lock); }
void hp_modules_unlock(void) { hp_lock_release(&modules_lock); }
const struct hp_module *hp_modules_first(void) { return hp_load_acquire(&newest); }
uint32_t hp_modules_epoch(void) { return hp_load_acquire(&deaths); }

uint32_t hp_modules_sequence(void) { return hp_load_acquire(&sequence); }
void hp_modules_watch(const struct hp_modules_watcher *fresh) { watcher = fresh; }

static bool is_alive(const struct hp_module *module) { return !hp_load_acquire(&module->is_gone); }

/* Is the loader's object at this module's place? All that can be said without looking into it. */
static bool is_same_place(const struct hp_module *module, const struct hp_object *object) {
  return module->map_start == object->map_start && module->map_end == object->map_end &&
         module->link_map == object->link_map && module->eh_frame_hdr == object->eh_frame_hdr;
}

/* Is the loader's object, completely described, this module? */
static bool is_same(const struct hp_module *module, const struct hp_object *object) {
  return is_same_place(module, object) && module->dynamic == object->dynamic && strcmp(module->path, object->name) == 0;
}

static bool is_same_path(const struct hp_module *module, const struct hp_object *object) {
  return module->map_start == object->map_start && module->map_end == object->map_end &&
         strcmp(module->path, object->name) == 0;
}

static bool is_same_build(const struct hp_module *module, const struct hp_module_image *image, uint64_t fingerprint) {
  if (module->build_id_size != image->build_id_size) return false;
  if (image->build_id_size == 0) return fingerprint != 0 && module->fingerprint == fingerprint;
  return memcmp(module->build_id, image->build_id, image->build_id_size) == 0;
}

/* Only what comes again is worth the look: 0 for all others, and where there is a build id. */
static uint64_t fingerprint_of(const struct hp_object *object, const struct hp_module_image *image) {
  if (image->build_id_size != 0) return 0;
  for (const struct hp_module *module = hp_load_acquire(&newest); module != NULL; module = module->next) {
    if (is_same_path(module, object)) return hp_module_image_fingerprint(object);
  }
  return 0;
}

static struct hp_module *find_alive(const struct hp_object *object) {
  for (struct hp_module *module = hp_load_acquire(&newest); module != NULL; module = module->next) {
    if (is_alive(module) && is_same(module, object)) return module;
  }
  return NULL;
}

/* Around everything that changes what is loaded. Whoever sees a part of the change sees that the sequence has moved: all of it
 * (is_gone, newest, closed_set) is release-stored and acquire-loaded. */
static void begin_change_locked(void) { hp_store_relaxed(&sequence, sequence + 1); }
static void end_change_locked(void) { hp_store_release(&sequence, sequence + 1); }

/* Between the two ends of a change. */
static void mark_dead_locked(struct hp_module *module) {
  if (watcher != NULL) watcher->leaving(module);
  hp_store_release(&module->is_gone, true);
  hp_store_release(&deaths, deaths + 1);
}

/* Whoever was where the object is now has gone; but for the program, whose segments may leave room for others. */
static bool bury_overlapping_locked(const struct hp_object *object) {
  bool any = false;
  for (struct hp_module *module = newest; module != NULL; module = module->next) {
    if (is_alive(module) && !module->is_executable && module->map_start < object->map_end &&
        object->map_start < module->map_end) {
      mark_dead_locked(module);
      any = true;
    }
  }
  return any;
}

static void adopt(struct hp_module *module, const struct hp_object *object, const struct hp_module_image *image) {
  module->tables = image->tables;
  module->link_map = object->link_map;
  module->dynamic = object->dynamic;
  module->eh_frame_hdr = object->eh_frame_hdr;
}

/* A module that was unloaded and is back; NULL: none. */
static struct hp_module *revive_locked(const struct hp_object *object, const struct hp_module_image *image,
                                       uint64_t fingerprint) {
  for (struct hp_module *module = newest; module != NULL; module = module->next) {
    if (!is_alive(module) && is_same_path(module, object) && is_same_build(module, image, fingerprint)) {
      adopt(module, object, image);
      if (watcher != NULL) watcher->returning(module);
      hp_store_release(&module->is_gone, false);
      return module;
    }
  }
  return NULL;
}

static struct hp_module *create_locked(const struct hp_object *object, const struct hp_module_image *image,
                                       uint64_t fingerprint) {
  size_t length = strnlen(object->name, HP_MODULE_PATH_MAX);
  struct hp_module *module = hp_arena_alloc(&module_arena, sizeof(*module) + length + 1);
  if (module == NULL) return NULL;
  char *path = (char *)(module + 1);
  memcpy(path, object->name, length);
  path[length] = 0;
  *module = (struct hp_module){.next = newest,
                               .map_start = object->map_start,
                               .map_end = object->map_end,
                               .text_start = image->text_start,
                               .text_end = image->text_end,
                               .text_offset = image->text_offset,
                               .load_bias = object->load_bias,
                               .index = registered++,
                               .build_id_size = image->build_id_size,
                               .fingerprint = fingerprint,
                               .is_vdso = object->map_start == getauxval(AT_SYSINFO_EHDR),
                               .path = path};
  module->is_executable = length == 0 && !module->is_vdso;
  memcpy(module->build_id, image->build_id, sizeof(module->build_id));
  adopt(module, object, image);
  hp_store_release(&newest, module);
  return module;
}

const struct hp_module *hp_modules_note(uintptr_t pc, bool *out_died) {
  struct hp_object object;
  if (!hp_object_find(pc, &object)) return NULL;
  hp_object_describe(&object);
  struct hp_module *module = find_alive(&object);
  if (module != NULL) return module;
  if (hp_thread.holds_all_locks) return NULL; /* this one too: the process is ending inside it */
  struct hp_module_image image;
  hp_module_image_read(&object, &image);
  uint64_t fingerprint = fingerprint_of(&object, &image);
  hp_lock_acquire(&modules_lock);
  module = find_alive(&object); /* another thread may have been faster */
  if (module == NULL) {
    begin_change_locked();
    if (bury_overlapping_locked(&object)) *out_died = true;
    module = revive_locked(&object, &image, fingerprint);
    if (module == NULL) module = create_locked(&object, &image, fingerprint);
    end_change_locked();
  }
  hp_lock_release(&modules_lock);
  return module;
}

static bool covers(const struct hp_module *module, uintptr_t address) {
  return address >= module->map_start && address < module->map_end;
}

const struct hp_module *hp_modules_find(uintptr_t address) {
  for (const struct hp_module *module = hp_load_acquire(&newest); module != NULL; module = module->next) {
    if (covers(module, address) && is_alive(module)) return module;
  }
  return NULL;
}

/* ---- which modules a stack belongs to ---- */

void hp_modules_set_returning_locked(const struct hp_module *module) { returning = module; }

/* near: the answer for the frame before, which is mostly the answer again; the program may have others inside its bounds. */
static const struct hp_module *find_locked(uintptr_t address, const struct hp_module *near) {
  if (near != NULL && !near->is_executable && covers(near, address)) return near;
  for (const struct hp_module *module = newest; module != NULL; module = module->next) {
    if (covers(module, address) && (is_alive(module) || module == returning)) return module;
  }
  return NULL;
}

/* Puts the module into its place by age. False: there is no room. */
static bool add_to_set(const struct hp_module **modules, uint32_t *count, const struct hp_module *module) {
  uint32_t at = 0;
  while (at < *count && modules[at]->index > module->index) at++;
  if (at < *count && modules[at] == module) return true;
  if (*count == HP_MODULE_SET_MAX) return false;
  memmove(&modules[at + 1], &modules[at], (*count - at) * sizeof modules[0]);
  modules[at] = module;
  ++*count;
  return true;
}

uint32_t hp_modules_set_of_locked(const uintptr_t *pcs, uint32_t depth) {
  const struct hp_module *modules[HP_MODULE_SET_MAX];
  const struct hp_module *module = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < depth; i++) {
    module = find_locked(pcs[i] - 1, module);
    if (module != NULL && !add_to_set(modules, &count, module)) return HP_MODULE_SET_UNKNOWN;
  }
  return hp_module_set_keep_locked(&module_arena, modules, count);
}

bool hp_modules_are_back_locked(uint32_t id, const uintptr_t *pcs, uint32_t depth) {
  const struct hp_module_set *set = hp_module_set_get(id);
  const struct hp_module *module = NULL;
  if (id == HP_MODULE_SET_UNKNOWN) return false;
  for (uint32_t i = 0; i < depth; i++) {
    module = find_locked(pcs[i] - 1, module);
    if (module != hp_module_set_find(set, pcs[i] - 1)) return false;
  }
  return true;
}

const struct hp_module_set *hp_modules_loaded(struct hp_arena *arena, uint32_t *out_sequence) {
  uint32_t before = hp_load_acquire(&sequence);
  const struct hp_module *first = hp_load_acquire(&newest);
  size_t room = 0;
  for (const struct hp_module *module = first; module != NULL; module = module->next) room++;
  struct hp_module_set *set = hp_arena_alloc(arena, sizeof *set + room * sizeof set->modules[0]);
  if (set == NULL) return NULL;
  for (const struct hp_module *module = first; module != NULL; module = module->next) {
    if (is_alive(module)) set->modules[set->count++] = module;
  }
  set->id = HP_MODULE_SET_LOADED + before;
  *out_sequence = before;
  return set;
}

/* Other threads may be unloading any of them, so nothing is looked into: another library at exactly the place of one that
 * has gone passes for it here, and is told apart when a frame of it is seen (hp_modules_note). The program does not go. */
bool hp_modules_check(void) {
  bool any = false;
  hp_lock_acquire(&modules_lock);
  for (struct hp_module *module = newest; module != NULL; module = module->next) {
    struct hp_object object;
    if (!is_alive(module) || module->is_executable) continue;
    if (hp_object_find(module->text_start, &object) && is_same_place(module, &object)) continue;
    if (!any) begin_change_locked();
    any = true;
    mark_dead_locked(module);
  }
  if (any) end_change_locked();
  hp_lock_release(&modules_lock);
  return any;
}
