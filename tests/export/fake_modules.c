/* SPDX-License-Identifier: MIT
 * fake_modules.c - see fake_modules.h. */
#include "fake_modules.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

enum { FAKE_MODULES_MAX = 512 };

static struct hp_module modules[FAKE_MODULES_MAX];
static unsigned module_count;
static uint32_t next_index; /* never again the same: names are remembered by it */
static unsigned note_count;
/* A set and the room for its modules. */
#define ROOM_FOR(modules) (sizeof(struct hp_module_set) + (modules) * sizeof(struct hp_module *))
static _Alignas(struct hp_module_set) char loaded_room[ROOM_FOR(FAKE_MODULES_MAX)];
static struct hp_module_set *loaded(void) { return (struct hp_module_set *)(void *)loaded_room; } /* all */
static bool is_refusing;

void fake_modules_reset(void) {
  module_count = 0;
  note_count = 0;
  *loaded() = (struct hp_module_set){.id = HP_MODULE_SET_LOADED};
  is_refusing = false;
}

void fake_modules_refuse(void) { is_refusing = true; }

const struct hp_module_set *fake_modules_loaded(void) { return loaded(); }

const struct hp_module_set *fake_modules_set(const struct hp_module *module) {
  static _Alignas(struct hp_module_set) char rooms[FAKE_MODULES_MAX][ROOM_FOR(1)];
  unsigned place = (unsigned)(module - modules);
  struct hp_module_set *set = (struct hp_module_set *)(void *)rooms[place];
  *set = (struct hp_module_set){.id = 2 + place, .count = 1};
  set->modules[0] = module;
  return set;
}

unsigned fake_modules_notes(void) { return note_count; }

struct hp_module *fake_modules_add(struct hp_module module) {
  if (module_count == FAKE_MODULES_MAX) return NULL;
  struct hp_module *slot = &modules[module_count];
  *slot = module;
  slot->next = module_count == 0 ? NULL : &modules[module_count - 1];
  slot->index = next_index++;
  module_count++;
  if (slot->map_start == 0) slot->map_start = slot->text_start;
  if (slot->map_end == 0) slot->map_end = slot->text_end;
  loaded()->modules[loaded()->count++] = slot;
  return slot;
}

struct search {
  uintptr_t pc;
  struct hp_module module;
  bool is_found;
};

static void read_notes(struct hp_module *module, const char *at, size_t n) {
  for (size_t used = 0; used + sizeof(ElfW(Nhdr)) <= n;) {
    const ElfW(Nhdr) *note = (const void *)(at + used);
    const char *id = at + used + sizeof *note + ((note->n_namesz + 3) & ~3u);
    if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= HP_BUILD_ID_MAX) {
      memcpy(module->build_id, id, note->n_descsz);
      module->build_id_size = (uint8_t)note->n_descsz;
    }
    used += sizeof *note + ((note->n_namesz + 3) & ~3u) + ((note->n_descsz + 3) & ~3u);
  }
}

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct search *search = data;
  struct hp_module module = {.load_bias = info->dlpi_addr, .map_start = UINTPTR_MAX};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uintptr_t start = (info->dlpi_addr + segment->p_vaddr) & ~4095ul;
    uintptr_t end = (info->dlpi_addr + segment->p_vaddr + segment->p_memsz + 4095) & ~4095ul;
    if (segment->p_type == PT_NOTE) read_notes(&module, (const char *)info->dlpi_addr + segment->p_vaddr, segment->p_memsz);
    if (segment->p_type != PT_LOAD) continue;
    if (start < module.map_start) module.map_start = start;
    if (end > module.map_end) module.map_end = end;
    if ((segment->p_flags & PF_X) == 0) continue;
    if (module.text_end == 0) {
      module.text_start = start;
      module.text_offset = segment->p_offset & ~4095ul;
    }
    module.text_end = end;
  }
  if (search->pc < module.map_start || search->pc >= module.map_end) return 0;
  module.path = info->dlpi_name;
  module.is_executable = info->dlpi_name[0] == 0;
  module.is_vdso = strstr(info->dlpi_name, "vdso") != NULL;
  search->module = module;
  search->is_found = true;
  return 1;
}

struct hp_module *fake_modules_add_loaded(uintptr_t pc) {
  struct search search = {.pc = pc};
  dl_iterate_phdr(visit, &search);
  return search.is_found ? fake_modules_add(search.module) : NULL;
}

const struct hp_module *hp_modules_note(uintptr_t pc, bool *out_died) {
  *out_died = false;
  note_count++;
  const struct hp_module *known = hp_modules_find(pc);
  return known != NULL || is_refusing ? known : fake_modules_add_loaded(pc);
}

const struct hp_module *hp_modules_first(void) { return module_count == 0 ? NULL : &modules[module_count - 1]; }

const struct hp_module *hp_modules_find(uintptr_t address) { return hp_module_set_find(loaded(), address); }

const struct hp_module *hp_module_set_find(const struct hp_module_set *set, uintptr_t address) {
  for (uint32_t i = 0; set != NULL && i < set->count; i++) {
    if (address >= set->modules[i]->map_start && address < set->modules[i]->map_end) return set->modules[i];
  }
  return NULL;
}
