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
static uint32_t deaths;          /* latest epoch; written under the lock */
static uint32_t registered;      /* under the lock */

void hp_modules_lock(void) { hp_lock_acquire(&modules_lock); }
void hp_modules_unlock(void) { hp_lock_release(&modules_lock); }
const struct hp_module *hp_modules_first(void) { return hp_load_acquire(&newest); }
uint32_t hp_modules_epoch(void) { return hp_load_acquire(&deaths); }

static bool is_alive(const struct hp_module *module) { return hp_load_acquire(&module->died) == 0; }

/* Is the loader's object at this module's place? All that can be said without looking into it. */
static bool is_same_place(const struct hp_module *module, const struct hp_object *object) {
  return module->map_start == object->map_start && module->map_end == object->map_end &&
         module->link_map == object->link_map && module->eh_frame_hdr == object->eh_frame_hdr;
}

/* Is the loader's object, completely described, this module? */
static bool is_same(const struct hp_module *module, const struct hp_object *object) {
  return is_same_place(module, object) && module->dynamic == object->dynamic && strcmp(module->path, object->name) == 0;
}

static bool is_same_file(const struct hp_module *module, const struct hp_object *object,
                         const struct hp_module_image *image) {
  return module->map_start == object->map_start && module->map_end == object->map_end && module->build_id_size > 0 &&
         module->build_id_size == image->build_id_size &&
         memcmp(module->build_id, image->build_id, image->build_id_size) == 0 && strcmp(module->path, object->name) == 0;
}

static struct hp_module *find_alive(const struct hp_object *object) {
  for (struct hp_module *module = hp_load_acquire(&newest); module != NULL; module = module->next) {
    if (is_alive(module) && is_same(module, object)) return module;
  }
  return NULL;
}

/* The next epoch, begun by the first death of an event. */
static uint32_t mark_dead_locked(struct hp_module *module, uint32_t epoch) {
  if (epoch == 0) {
    epoch = deaths + 1;
    hp_store_release(&deaths, epoch);
  }
  hp_store_release(&module->died, epoch);
  return epoch;
}

/* Whoever was where the object is now has gone; but for the program, whose segments may leave room for others. */
static bool bury_overlapping_locked(const struct hp_object *object) {
  uint32_t epoch = 0;
  for (struct hp_module *module = newest; module != NULL; module = module->next) {
    if (is_alive(module) && !module->is_executable && module->map_start < object->map_end &&
        object->map_start < module->map_end) {
      epoch = mark_dead_locked(module, epoch);
    }
  }
  return epoch != 0;
}

static void adopt(struct hp_module *module, const struct hp_object *object, const struct hp_module_image *image) {
  module->tables = image->tables;
  module->link_map = object->link_map;
  module->dynamic = object->dynamic;
  module->eh_frame_hdr = object->eh_frame_hdr;
}

/* A module that was unloaded and is back; NULL: none. */
static struct hp_module *revive_locked(const struct hp_object *object, const struct hp_module_image *image) {
  for (struct hp_module *module = newest; module != NULL; module = module->next) {
    if (!is_alive(module) && is_same_file(module, object, image)) {
      adopt(module, object, image);
      hp_store_release(&module->died, 0);
      return module;
    }
  }
  return NULL;
}

static struct hp_module *create_locked(const struct hp_object *object, const struct hp_module_image *image) {
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
                               .born = deaths,
                               .build_id_size = image->build_id_size,
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
  hp_lock_acquire(&modules_lock);
  module = find_alive(&object); /* another thread may have been faster */
  if (module == NULL) {
    if (bury_overlapping_locked(&object)) *out_died = true;
    module = revive_locked(&object, &image);
    if (module == NULL) module = create_locked(&object, &image);
  }
  hp_lock_release(&modules_lock);
  return module;
}

const struct hp_module *hp_modules_find(uintptr_t pc, uint32_t epoch) {
  for (const struct hp_module *module = hp_load_acquire(&newest); module != NULL; module = module->next) {
    if (pc < module->map_start || pc >= module->map_end) continue;
    uint32_t died = hp_load_acquire(&module->died);
    if (epoch == 0 ? died == 0 : module->born < epoch && (died == 0 || epoch <= died)) return module;
  }
  return NULL;
}

/* Other threads may be unloading any of them, so nothing is looked into: another library at exactly the place of one that
 * has gone passes for it here, and is told apart when a frame of it is seen (hp_modules_note). The program does not go. */
uint32_t hp_modules_check(void) {
  uint32_t epoch = 0;
  hp_lock_acquire(&modules_lock);
  for (struct hp_module *module = newest; module != NULL; module = module->next) {
    struct hp_object object;
    if (!is_alive(module) || module->is_executable) continue;
    if (!hp_object_find(module->text_start, &object) || !is_same_place(module, &object))
      epoch = mark_dead_locked(module, epoch);
  }
  hp_lock_release(&modules_lock);
  return epoch;
}
