/* SPDX-License-Identifier: MIT
 * elf_fixture.c - see elf_fixture.h. */
#include "elf_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const uint8_t FIXTURE_BUILD_ID[8] = {1, 2, 3, 4, 5, 6, 7, 8};

void elf_fixture_path(char path[64]) {
  strcpy(path, access("/dev/shm", W_OK) == 0 ? "/dev/shm/hp_elf_XXXXXX" : "/tmp/hp_elf_XXXXXX");
  int fd = mkstemp(path);
  if (fd < 0) abort();
  close(fd);
}

static size_t reserve(struct elf_fixture *fixture, size_t n) {
  size_t at = (fixture->size + 7) & ~(size_t)7;
  fixture->bytes = realloc(fixture->bytes, at + n);
  if (fixture->bytes == NULL) abort();
  memset(fixture->bytes + fixture->size, 0, at + n - fixture->size);
  fixture->size = at + n;
  return at;
}

Elf64_Ehdr *elf_fixture_header(struct elf_fixture *fixture) { return (Elf64_Ehdr *)fixture->bytes; }

Elf64_Shdr *elf_fixture_section(struct elf_fixture *fixture, unsigned index) {
  return (Elf64_Shdr *)(fixture->bytes + elf_fixture_header(fixture)->e_shoff) + index;
}

static void add_symbols(struct elf_fixture *fixture, unsigned index, unsigned type, const struct fixture_symbol *symbols,
                        size_t n) {
  size_t strings = 1;
  for (size_t i = 0; i < n; i++) strings += strlen(symbols[i].name) + 1;
  size_t table_at = reserve(fixture, (n + 1) * sizeof(Elf64_Sym));
  size_t strings_at = reserve(fixture, strings);
  size_t next = 1;
  for (size_t i = 0; i < n; i++) {
    Elf64_Sym symbol = {.st_name = (Elf64_Word)next,
                        .st_info = ELF64_ST_INFO(symbols[i].binding, symbols[i].type),
                        .st_shndx = symbols[i].section,
                        .st_value = symbols[i].value,
                        .st_size = symbols[i].size};
    memcpy(fixture->bytes + table_at + (i + 1) * sizeof symbol, &symbol, sizeof symbol);
    strcpy((char *)fixture->bytes + strings_at + next, symbols[i].name);
    next += strlen(symbols[i].name) + 1;
  }
  *elf_fixture_section(fixture, index) = (Elf64_Shdr){.sh_type = n == 0 ? SHT_NULL : type,
                                                      .sh_offset = table_at,
                                                      .sh_size = (n + 1) * sizeof(Elf64_Sym),
                                                      .sh_link = index + 1,
                                                      .sh_entsize = sizeof(Elf64_Sym)};
  *elf_fixture_section(fixture, index + 1) =
      (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = strings_at, .sh_size = strings};
}

static void add_build_id(struct elf_fixture *fixture) {
  const Elf64_Nhdr other = {.n_namesz = 4, .n_descsz = 5, .n_type = NT_GNU_ABI_TAG};
  const Elf64_Nhdr note = {.n_namesz = 4, .n_descsz = sizeof FIXTURE_BUILD_ID, .n_type = NT_GNU_BUILD_ID};
  size_t bytes = sizeof other + 4 + 8 + sizeof note + 4 + sizeof FIXTURE_BUILD_ID;
  size_t at = reserve(fixture, bytes);
  uint8_t *to = fixture->bytes + at;
  memcpy(to, &other, sizeof other);
  memcpy(to + sizeof other, "GNU", 4);
  to += sizeof other + 4 + 8;
  memcpy(to, &note, sizeof note);
  memcpy(to + sizeof note, "GNU", 4);
  memcpy(to + sizeof note + 4, FIXTURE_BUILD_ID, sizeof FIXTURE_BUILD_ID);
  Elf64_Phdr *segment = (Elf64_Phdr *)(fixture->bytes + sizeof(Elf64_Ehdr));
  *segment = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = at, .p_filesz = bytes, .p_memsz = bytes, .p_align = 4};
}

struct elf_fixture elf_fixture_make(const struct fixture_symbol *symtab, size_t n_symtab,
                                    const struct fixture_symbol *dynsym, size_t n_dynsym) {
  struct elf_fixture fixture = {0};
  reserve(&fixture, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
  size_t sections_at = reserve(&fixture, FIXTURE_SECTIONS * sizeof(Elf64_Shdr));
  *elf_fixture_header(&fixture) = (Elf64_Ehdr){.e_ident = {0x7F, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                                               .e_type = ET_DYN,
                                               .e_phoff = sizeof(Elf64_Ehdr),
                                               .e_shoff = sections_at,
                                               .e_phentsize = sizeof(Elf64_Phdr),
                                               .e_phnum = 1,
                                               .e_shentsize = sizeof(Elf64_Shdr),
                                               .e_shnum = FIXTURE_SECTIONS};
  *elf_fixture_section(&fixture, FIXTURE_TEXT) = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_addr = 0x1000, .sh_size = 0x1000};
  *elf_fixture_section(&fixture, FIXTURE_PLT) = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_addr = 0x2000, .sh_size = 0x1000};
  add_build_id(&fixture);
  add_symbols(&fixture, FIXTURE_SYMTAB, SHT_SYMTAB, symtab, n_symtab);
  add_symbols(&fixture, FIXTURE_DYNSYM, SHT_DYNSYM, dynsym, n_dynsym);
  return fixture;
}

void elf_fixture_write(const struct elf_fixture *fixture, const char *path, size_t n) {
  FILE *out = fopen(path, "wb");
  if (out == NULL || fwrite(fixture->bytes, 1, n, out) != n || fclose(out) != 0) abort();
}

void elf_fixture_free(struct elf_fixture *fixture) { free(fixture->bytes); }
