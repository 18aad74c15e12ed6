/* SPDX-License-Identifier: MIT
 * symbols.h - names of functions from ELF symbol tables (.symtab, else .dynsym), remembered for later dumps.
 *
 * Invariants  a name once found is kept for the life of the process (own arena, counted); a module's file is opened at most
 *             once a dump, only when it has an address without an answer, and only if its build id is the module's.
 * Callers     the encoder, one dump at a time.
 * Signals     async-signal-safe: raw open, fstat, mmap of the file, close. A file that shrinks while mapped is a hostile
 *             case: read with pread into the arena instead of trusting a mapping. */
#ifndef HP_SYMBOLS_H
#define HP_SYMBOLS_H

#include "arena.h"
#include "modules.h"

struct hp_symbol_query {
  uintptr_t address;                /* return address minus one */
  const struct hp_module *module;   /* NULL: no name */
  const char *name;                 /* out: NULL if unknown; valid for ever */
};

/* Fill in the names of n queries. `executable`: path of the program. */
void hp_symbols_resolve(struct hp_symbol_query *queries, size_t n, const char *executable, struct hp_arena *scratch);

/* Is this the name of a replaceable C++ operator new (any form)? Such frames at the leaf are left out of a profile. */
bool hp_symbols_is_operator_new(const char *name);

/* Bytes held by remembered names. */
size_t hp_symbols_bytes(void);

#endif
