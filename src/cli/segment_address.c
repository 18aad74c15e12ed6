/* SPDX-License-Identifier: MIT
 * segment_address.c - see segment_address.h.
 */
#include "segment_address.h"

enum { PAGE_BYTES = 4096 };

void hp_segments_place(struct hp_segment *segments, size_t count) {
  for (size_t i = 1; i < count; i++) {
    uint64_t end = segments[i - 1].offset + segments[i - 1].memory_bytes;
    segments[i].offset = end + ((segments[i].address - end) & (segments[i].align - 1));
  }
}

size_t hp_segments_read(Elf *elf, struct hp_segment segments[HP_SEGMENTS_MAX]) {
  size_t headers, count = 0;
  bool has_bytes = false;
  if (elf_getphdrnum(elf, &headers) != 0) return 0;
  for (size_t i = 0; i < headers && i < INT32_MAX && count < HP_SEGMENTS_MAX; i++) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, (int)i, &header) == NULL || header.p_type != PT_LOAD) continue;
    bool is_code = (header.p_flags & PF_X) != 0, is_power = (header.p_align & (header.p_align - 1)) == 0;
    segments[count++] = (struct hp_segment){header.p_offset, header.p_vaddr, header.p_memsz,
                                            is_power && header.p_align > PAGE_BYTES ? header.p_align : PAGE_BYTES, is_code};
    has_bytes |= is_code && header.p_filesz != 0;
  }
  if (!has_bytes) hp_segments_place(segments, count);
  return count;
}

static bool has_address(const struct hp_segment *segment, uint64_t address) {
  return segment->is_code && address >= segment->address && address - segment->address < segment->memory_bytes;
}

static bool is_in_code(const struct hp_segment *segments, size_t count, uint64_t address) {
  for (size_t i = 0; i < count; i++)
    if (has_address(&segments[i], address)) return true;
  return false;
}

/* Does the mapping's offset lie in the segment, or in the page it begins in? */
static bool has_offset(const struct hp_segment *segment, uint64_t offset) {
  uint64_t first = segment->offset & ~(uint64_t)(PAGE_BYTES - 1);
  return offset >= first && offset - first < (segment->offset - first) + segment->memory_bytes;
}

uint64_t hp_segments_find(const struct hp_segment *segments, size_t count, const struct hp_symbol_place *place) {
  uint64_t distance = place->address - place->mapping_start, farther = place->address;
  for (size_t i = 0; i < count; i++) {
    if (!has_offset(&segments[i], place->mapping_offset)) continue;
    uint64_t address = segments[i].address - (segments[i].offset - place->mapping_offset) + distance;
    if (has_address(&segments[i], address)) return address;
    if (farther == place->address && is_in_code(segments, count, address)) farther = address;
  }
  if (farther != place->address) return farther;
  for (size_t i = 0; i < count; i++) { /* a mapping of all the file's bytes, one behind the other */
    uint64_t address = segments[i].address + (distance + place->mapping_offset - segments[i].offset);
    if (has_address(&segments[i], address)) return address;
  }
  return place->address;
}
