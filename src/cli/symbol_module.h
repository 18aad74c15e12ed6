/* SPDX-License-Identifier: MIT
 * symbol_module.h - one binary, with its debug information wherever that is, asked for the frames at an address.
 *
 * libdwfl finds and reads the files; the indices (units by address, functions of a unit, ELF symbols) are built here once per
 * module, because libdw answers each address by a walk over all of a unit, and all of the symbol table.
 */
#ifndef HP_SYMBOL_MODULE_H
#define HP_SYMBOL_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment_address.h"

struct hp_symbol_module;

struct hp_symbol_frame {
  const char *system_name; /* linker name, or the plain name where there is no other; owned by the module */
  const char *file;        /* "" unknown; owned by the module */
  int64_t line;            /* 0 unknown */
  int64_t column;
  int64_t start_line; /* where the function is declared, 0 unknown */
};

/* How deep a chain of inlined calls is followed. */
enum { HP_SYMBOL_FRAMES_MAX = 64 };

/* Opens the binary at `path` (a regular file), or with path null whatever libdw finds for the build id (debuginfod, if
 * DEBUGINFOD_URLS is set). `debug_path`: libdwfl's search list. Null if it is no ELF file, or has another build id than `build_id`
 * (hexadecimal; "": any); then *why says so. */
struct hp_symbol_module *hp_symbol_module_open(const char *path, const char *build_id, const char *debug_path,
                                               const char **why);
void hp_symbol_module_close(struct hp_symbol_module *module);

/* Frames at a place, innermost inlined one first; returns how many (0: nothing known). Where the mapping says nothing sensible the
 * address is taken for the one the file is linked at. */
size_t hp_symbol_module_frames(struct hp_symbol_module *module, const struct hp_symbol_place *place,
                               struct hp_symbol_frame frames[HP_SYMBOL_FRAMES_MAX]);

/* True if the module has line numbers and inlined frames (DWARF), not just symbols. */
bool hp_symbol_module_has_lines(const struct hp_symbol_module *module);

#endif
