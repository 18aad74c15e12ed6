/* SPDX-License-Identifier: MIT
 * elf_reader.h - what an ELF64 file says of itself: build id, program headers, where its function symbols are.
 *
 * Invariants  nothing a file says is believed before it is compared with the file's size; reads go through pread (a
 *             file that shrinks under us gives an error, not a fault), the vdso's through memory; work is bounded
 *             whatever the file says.
 * Callers     elf_symbols, symbols. Signals: async-signal-safe. */
#ifndef HP_ELF_READER_H
#define HP_ELF_READER_H

#include <elf.h>

#include "compiler.h"

struct hp_elf {
  int fd; /* -1: in memory */
  const unsigned char *memory;
  uint64_t size_bytes;
  Elf64_Ehdr header;
  uint64_t section_count;
};

/* A symbol table and its strings, both inside the file. */
struct hp_elf_symbol_table {
  uint64_t offset;
  uint64_t count;
  uint64_t strings_offset;
  uint64_t strings_bytes;
};

/* Open a regular file. 0, -ENOEXEC (not a little-endian ELF64 object of sane shape), or why it could not be opened. */
int hp_elf_open(struct hp_elf *elf, const char *path);
/* The image at `memory`, size bytes of which are mapped for as long as it is used. 0 or -ENOEXEC. */
int hp_elf_open_memory(struct hp_elf *elf, const void *memory, uint64_t size_bytes);
void hp_elf_close(struct hp_elf *elf);

/* Exactly n bytes at `offset`; false: not there. */
bool hp_elf_read(const struct hp_elf *elf, uint64_t offset, void *to, size_t n);

/* The GNU build id; returns its length, 0 if there is none or it does not fit max. */
size_t hp_elf_build_id(const struct hp_elf *elf, uint8_t *out_id, size_t max);

/* .symtab, or else .dynsym. false: neither. */
bool hp_elf_find_symbols(const struct hp_elf *elf, struct hp_elf_symbol_table *out);

/* End of section `index` if it covers the address, else 0. */
uint64_t hp_elf_section_end(const struct hp_elf *elf, uint64_t index, uint64_t address);

#endif
