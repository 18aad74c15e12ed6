/* SPDX-License-Identifier: MIT
 * elf_symbols.h - the functions that cover a sorted list of addresses, found in one pass over an ELF symbol table.
 *
 * Answer      the sized function symbol that covers the address and begins last; without one, the symbol without a size that
 *             is the nearest function below, within its section. Of several at one place: global or weak before local, fewer
 *             leading underscores (malloc, not __libc_malloc), fewer bytes, then the smaller text.
 * Bounds      HP_ELF_SYMBOLS_MAX symbols are read, names are cut at HP_SYMBOL_NAME_MAX bytes and at '@' (versions), and a
 *             table that overlaps itself without end is given up.
 * Callers     symbols.c. Signals: async-signal-safe. */
#ifndef HP_ELF_SYMBOLS_H
#define HP_ELF_SYMBOLS_H

#include "arena.h"
#include "elf_reader.h"

enum { HP_ELF_SYMBOLS_MAX = 4 * 1000 * 1000, HP_SYMBOL_NAME_MAX = 4096 };

struct hp_elf_candidate {
  uint64_t value;
  uint32_t name; /* offset in the string table */
  uint16_t section;
  uint8_t rank; /* 0: none; 1: local; 2: global or weak */
};

struct hp_elf_target {
  uint64_t address;                 /* as the file counts; the list is sorted by it */
  struct hp_elf_candidate covering; /* sized */
  struct hp_elf_candidate nearest;  /* any size; nearest_is_sized says which */
  bool nearest_is_sized;
};

/* Scratch buffers of one resolver. */
struct hp_elf_names {
  const struct hp_elf *elf;
  struct hp_elf_symbol_table table;
  char *name; /* HP_SYMBOL_NAME_MAX + 1 bytes each */
  char *other;
  void *block;     /* of symbols */
  uint64_t budget; /* steps left, for hostile tables */
};

/* Prepare for a file. All zero before the first; for the next one the buffers are there. 0, -ENOENT (no symbols) or -ENOMEM. */
int hp_elf_names_open(struct hp_elf_names *names, const struct hp_elf *elf, struct hp_arena *scratch);

/* Find the symbols of n targets sorted by address. */
void hp_elf_names_match(struct hp_elf_names *names, struct hp_elf_target *targets, size_t n);

/* The name of a matched target goes to names->name (its length is returned, 0: none), under its key. If the key is last_key,
 * the name that is there, last_length long, is left: neighbours often share a symbol. */
size_t hp_elf_names_read(struct hp_elf_names *names, const struct hp_elf_target *target, uint64_t last_key,
                         size_t last_length, uint64_t *out_key);

#endif
