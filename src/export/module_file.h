/* SPDX-License-Identifier: MIT
 * module_file.h - where the file of a module is. The loader knows a library by the words it was opened with: "./plugin.so" means
 * nothing after a chdir, or to a reader of the profile, and "/proc/self/fd/5" nothing to anybody else.
 * Callers     mapping_table, symbols. Signals: async-signal-safe. */
#ifndef HP_MODULE_FILE_H
#define HP_MODULE_FILE_H

#include "arena.h"
#include "modules.h"

/* The loader's path, or the kernel's where that says nothing elsewhere and the module is still loaded (" (deleted)" may stand behind
 * it); in the arena, or as old as the module. Never NULL. */
const char *hp_module_file(const struct hp_module *module, struct hp_arena *arena);

#endif
