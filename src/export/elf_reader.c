/* SPDX-License-Identifier: MIT
 * elf_reader.c - see elf_reader.h. */
#include "elf_reader.h"

#include <errno.h>
#include <string.h>

#include "sys.h"

enum {
  ELF_SECTIONS_MAX = 1 << 20,
  ELF_PROGRAM_HEADERS_MAX = 1024,
  ELF_NOTES_MAX = 256, /* in one segment */
  ELF_HEADERS_AT_ONCE = 8,
};

bool hp_elf_read(const struct hp_elf *elf, uint64_t offset, void *to, size_t n) {
  if (offset > elf->size_bytes || n > elf->size_bytes - offset) return false;
  if (elf->memory != NULL) {
    memcpy(to, elf->memory + offset, n);
    return true;
  }
  char *at = to;
  while (n > 0) {
    long got = hp_sys_pread(elf->fd, at, n, (int64_t)offset);
    if (got == -EINTR) continue;
    if (got <= 0 || (size_t)got > n) return false;
    at += got;
    n -= (size_t)got;
    offset += (uint64_t)got;
  }
  return true;
}

static int read_header(struct hp_elf *elf) {
  Elf64_Ehdr *header = &elf->header;
  if (!hp_elf_read(elf, 0, header, sizeof *header)) return -ENOEXEC;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return -ENOEXEC;
  }
  if (header->e_phnum != 0 && header->e_phentsize != sizeof(Elf64_Phdr)) return -ENOEXEC;
  if (header->e_phnum > ELF_PROGRAM_HEADERS_MAX) return -ENOEXEC;
  elf->section_count = header->e_shnum;
  if (header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr)) {
    elf->section_count = 0;
  } else if (header->e_shnum == 0) { /* more than 65279 sections: the number is in the first one */
    Elf64_Shdr first;
    elf->section_count = hp_elf_read(elf, header->e_shoff, &first, sizeof first) ? first.sh_size : 0;
  }
  if (elf->section_count > ELF_SECTIONS_MAX) return -ENOEXEC;
  return 0;
}

int hp_elf_open(struct hp_elf *elf, const char *path) {
  memset(elf, 0, sizeof *elf);
  /* O_NONBLOCK: what has the name of a library may be a pipe. */
  elf->fd = hp_sys_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
  if (elf->fd < 0) return elf->fd;
  struct stat stat;
  int status = hp_sys_fstat(elf->fd, &stat);
  if (status == 0 && (!S_ISREG(stat.st_mode) || stat.st_size < 0)) status = -ENOEXEC;
  if (status == 0) {
    elf->size_bytes = (uint64_t)stat.st_size;
    status = read_header(elf);
  }
  if (status != 0) hp_elf_close(elf);
  return status;
}

int hp_elf_open_memory(struct hp_elf *elf, const void *memory, uint64_t size_bytes) {
  memset(elf, 0, sizeof *elf);
  elf->fd = -1;
  elf->memory = memory;
  elf->size_bytes = size_bytes;
  return read_header(elf);
}

void hp_elf_close(struct hp_elf *elf) {
  if (elf->fd >= 0) hp_sys_close(elf->fd);
  elf->fd = -1;
  elf->size_bytes = 0;
}

static uint64_t align_up(uint64_t n, uint64_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

/* The build id among the notes at [at, end). */
static size_t build_id_in_notes(const struct hp_elf *elf, uint64_t at, uint64_t end, uint64_t alignment, uint8_t *out_id,
                                size_t max) {
  for (int i = 0; i < ELF_NOTES_MAX && at < end; i++) {
    Elf64_Nhdr note;
    char name[4];
    if (end - at < sizeof note || !hp_elf_read(elf, at, &note, sizeof note)) return 0;
    uint64_t name_at = at + sizeof note;
    uint64_t id_at = align_up(name_at + note.n_namesz, alignment);
    at = align_up(id_at + note.n_descsz, alignment);
    if (at > align_up(end, alignment)) return 0;
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof name) continue;
    if (!hp_elf_read(elf, name_at, name, sizeof name) || memcmp(name, "GNU", sizeof name) != 0) continue;
    if (note.n_descsz > max || !hp_elf_read(elf, id_at, out_id, note.n_descsz)) return 0;
    return note.n_descsz;
  }
  return 0;
}

size_t hp_elf_build_id(const struct hp_elf *elf, uint8_t *out_id, size_t max) {
  for (unsigned i = 0; i < elf->header.e_phnum; i++) {
    Elf64_Phdr segment;
    if (!hp_elf_read(elf, elf->header.e_phoff + i * sizeof segment, &segment, sizeof segment)) return 0;
    if (segment.p_type != PT_NOTE) continue;
    if (segment.p_offset > elf->size_bytes || segment.p_filesz > elf->size_bytes - segment.p_offset) continue;
    uint64_t alignment = segment.p_align == 8 ? 8 : 4;
    size_t n = build_id_in_notes(elf, segment.p_offset, segment.p_offset + segment.p_filesz, alignment, out_id, max);
    if (n != 0) return n;
  }
  return 0;
}

static bool read_section(const struct hp_elf *elf, uint64_t index, Elf64_Shdr *out) {
  if (index >= elf->section_count) return false;
  return hp_elf_read(elf, elf->header.e_shoff + index * sizeof *out, out, sizeof *out);
}

static bool is_in_file(const struct hp_elf *elf, const Elf64_Shdr *section) {
  return section->sh_offset <= elf->size_bytes && section->sh_size <= elf->size_bytes - section->sh_offset;
}

static bool accept_symbols(const struct hp_elf *elf, const Elf64_Shdr *section, struct hp_elf_symbol_table *out) {
  Elf64_Shdr strings;
  if (section->sh_entsize != sizeof(Elf64_Sym) || !is_in_file(elf, section)) return false;
  if (!read_section(elf, section->sh_link, &strings) || strings.sh_type != SHT_STRTAB || !is_in_file(elf, &strings))
    return false;
  out->offset = section->sh_offset;
  out->count = section->sh_size / sizeof(Elf64_Sym);
  out->strings_offset = strings.sh_offset;
  out->strings_bytes = strings.sh_size;
  return out->count != 0 && out->strings_bytes != 0;
}

bool hp_elf_find_symbols(const struct hp_elf *elf, struct hp_elf_symbol_table *out) {
  bool has_dynamic = false;
  for (uint64_t first = 0; first < elf->section_count; first += ELF_HEADERS_AT_ONCE) {
    Elf64_Shdr sections[ELF_HEADERS_AT_ONCE];
    uint64_t n = elf->section_count - first < ELF_HEADERS_AT_ONCE ? elf->section_count - first : ELF_HEADERS_AT_ONCE;
    if (!hp_elf_read(elf, elf->header.e_shoff + first * sizeof sections[0], sections, n * sizeof sections[0])) break;
    for (uint64_t i = 0; i < n; i++) {
      if (sections[i].sh_type == SHT_SYMTAB && accept_symbols(elf, &sections[i], out)) return true;
      if (sections[i].sh_type != SHT_DYNSYM || has_dynamic) continue;
      has_dynamic = accept_symbols(elf, &sections[i], out);
    }
  }
  return has_dynamic;
}

uint64_t hp_elf_section_end(const struct hp_elf *elf, uint64_t index, uint64_t address) {
  Elf64_Shdr section;
  if (index == SHN_UNDEF || index >= SHN_LORESERVE || !read_section(elf, index, &section)) return 0;
  if (address < section.sh_addr || address - section.sh_addr >= section.sh_size) return 0;
  return section.sh_addr + section.sh_size;
}
