/* SPDX-License-Identifier: MIT
 * elf_fixture.h - small ELF64 files made for a test: program headers, a build id, one or two symbol tables. */
#ifndef HP_ELF_FIXTURE_H
#define HP_ELF_FIXTURE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

struct fixture_symbol {
  const char *name;
  uint64_t value;
  uint64_t size;
  unsigned char type;    /* STT_* */
  unsigned char binding; /* STB_* */
  uint16_t section;      /* FIXTURE_TEXT, SHN_UNDEF, ... */
};

/* Sections of the file; the two tables of code cover [0x1000, 0x2000) and [0x2000, 0x3000). */
enum { FIXTURE_TEXT = 1, FIXTURE_PLT, FIXTURE_SYMTAB, FIXTURE_STRTAB, FIXTURE_DYNSYM, FIXTURE_DYNSTR, FIXTURE_SECTIONS };

struct elf_fixture {
  uint8_t *bytes;
  size_t size;
};

/* A file with these symbols in .symtab (n_symtab 0: the section is there and of type SHT_NULL) and in .dynsym. */
struct elf_fixture elf_fixture_make(const struct fixture_symbol *symtab, size_t n_symtab,
                                    const struct fixture_symbol *dynsym, size_t n_dynsym);
Elf64_Ehdr *elf_fixture_header(struct elf_fixture *fixture);
Elf64_Shdr *elf_fixture_section(struct elf_fixture *fixture, unsigned index);
/* A new empty file for one, in memory if there is such a place: some tests write thousands. The caller unlinks it. */
void elf_fixture_path(char path[64]);
/* Write the first n bytes to a file. */
void elf_fixture_write(const struct elf_fixture *fixture, const char *path, size_t n);
void elf_fixture_free(struct elf_fixture *fixture);

/* Its build id. */
extern const uint8_t FIXTURE_BUILD_ID[8];

#endif
