/* SPDX-License-Identifier: MIT
 * module_file.c - see module_file.h. */
#include "module_file.h"

#include <string.h>

#include "mapped_file.h"

enum { MODULE_FILE_MAX = 4096 };

static bool means_the_same_elsewhere(const char *path) {
  static const char proc[] = "/proc/";
  return path[0] == '/' && strncmp(path, proc, sizeof proc - 1) != 0;
}

const char *hp_module_file(const struct hp_module *module, struct hp_arena *arena) {
  const char *path = module->path != NULL ? module->path : "";
  if (path[0] == 0 || module->is_vdso || hp_load_acquire(&module->is_gone) || means_the_same_elsewhere(path)) return path;
  char *file = hp_arena_alloc(arena, MODULE_FILE_MAX); /* zeroes */
  return file != NULL && hp_mapped_file(module->text_start, file, MODULE_FILE_MAX - 1) > 0 ? file : path;
}
