/* SPDX-License-Identifier: MIT
 * symbols.h - names of functions from ELF symbol tables (.symtab, else .dynsym), remembered for later dumps.
 *
 * Invariants  an answer once found, "unknown" too, is kept for the life of the process (own arena, counted, up to the
 *             ceiling of heap.h; beyond it names live in the dump's arena and are looked up again). A module's file is
 *             opened at most once a dump, only when it has an address without an answer, and believed only if its
 *             build id is the module's, or, where there is none, if its headers are the ones in memory.
 * Callers     the encoder, one dump at a time.
 * Signals     async-signal-safe: raw open, fstat, pread, close; nothing is mapped, a file may shrink meanwhile.
 * Fork        a child keeps what is remembered; forked in the middle of a dump it forgets. */
#ifndef HP_SYMBOLS_H
#define HP_SYMBOLS_H

#include "arena.h"
#include "modules.h"

struct hp_symbol_query {
  uintptr_t address;              /* return address minus one */
  const struct hp_module *module; /* NULL: no name */
  const char *name;               /* out: NULL if unknown; valid for ever, beyond the ceiling as long as `scratch` */
};

/* Fill in the names of n queries; near the ceiling those of some modules stay unknown. `executable`: path of the program, or NULL. */
void hp_symbols_resolve(struct hp_symbol_query *queries, size_t n, const char *executable, struct hp_arena *scratch);

/* Is this the name of a replaceable C++ operator new (any form)? Such frames at the leaf are left out of a profile. */
bool hp_symbols_is_operator_new(const char *name);

/* Give up what is remembered without touching it: a forked child whose parent was in the middle of a dump. */
void hp_symbols_forget(void);

/* Bytes held by remembered names. */
size_t hp_symbols_bytes(void);

#endif
