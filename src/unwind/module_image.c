/* SPDX-License-Identifier: MIT
 * module_image.c - see module_image.h. */
#include "module_image.h"

#include <elf.h>
#include <string.h>

#include "hash.h"

enum { HP_IMAGE_PAGE = 4096, HP_IMAGE_NOTES_MAX = 64, HP_IMAGE_HASHED_MAX = 1 << 20 };

struct image {
  uintptr_t start;
  uintptr_t end;
  uintptr_t bias;
  const Elf64_Phdr *headers;
  unsigned count;
};

static bool open_image(const struct hp_object *object, struct image *out) {
  *out = (struct image){.start = object->map_start, .end = object->map_end, .bias = object->load_bias};
  if (object->headers != NULL) {
    out->headers = object->headers;
    out->count = object->header_count;
    return true;
  }
  if (out->end <= out->start || out->end - out->start < HP_IMAGE_PAGE) return false;
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)out->start;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff > HP_IMAGE_PAGE || header->e_phoff % 8 != 0) return false;
  if (header->e_phnum > (HP_IMAGE_PAGE - header->e_phoff) / sizeof(Elf64_Phdr)) return false;
  out->headers = (const Elf64_Phdr *)(out->start + header->e_phoff);
  out->count = header->e_phnum;
  return true;
}

/* The segment's place in memory; false when it is not inside the mapping. */
static bool place_segment(const struct image *image, const Elf64_Phdr *header, uintptr_t *start, uintptr_t *end) {
  *start = image->bias + header->p_vaddr;
  *end = *start + header->p_memsz;
  return *start >= image->start && *end <= image->end && *start < *end;
}

/* The readable segment of memory around [at, at + 1); false: none. */
static bool find_readable(const struct image *image, uintptr_t at, uintptr_t *start, uintptr_t *end) {
  for (unsigned i = 0; i < image->count; i++) {
    const Elf64_Phdr *header = &image->headers[i];
    if (header->p_type == PT_LOAD && (header->p_flags & PF_R) != 0 && place_segment(image, header, start, end) &&
        at >= *start && at < *end) {
      return true;
    }
  }
  return false;
}

static void read_text(const struct image *image, struct hp_module_image *out) {
  uintptr_t first = UINTPTR_MAX;
  uintptr_t last = 0;
  for (unsigned i = 0; i < image->count; i++) {
    const Elf64_Phdr *header = &image->headers[i];
    uintptr_t start, end;
    if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0 || !place_segment(image, header, &start, &end)) continue;
    uintptr_t in_page = start % HP_IMAGE_PAGE;
    if (start < first) {
      first = start;
      out->text_start = start - in_page;
      out->text_offset = header->p_offset >= in_page ? header->p_offset - in_page : 0;
    }
    if (end > last) last = end;
  }
  if (last == 0) return;
  last = (last + HP_IMAGE_PAGE - 1) & ~(uintptr_t)(HP_IMAGE_PAGE - 1);
  out->text_end = last < image->end ? last : image->end;
}

static bool take_build_id(uintptr_t at, uintptr_t end, struct hp_module_image *out) {
  for (int i = 0; i < HP_IMAGE_NOTES_MAX && end - at >= sizeof(Elf64_Nhdr); i++) {
    Elf64_Nhdr note;
    memcpy(&note, (const void *)at, sizeof(note));
    at += sizeof(note);
    uintptr_t name_size = ((uintptr_t)note.n_namesz + 3) & ~(uintptr_t)3;
    uintptr_t data_size = ((uintptr_t)note.n_descsz + 3) & ~(uintptr_t)3;
    if (name_size > end - at || data_size > end - at - name_size) return false;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp((const void *)at, "GNU", 4) == 0 &&
        note.n_descsz > 0 && note.n_descsz <= HP_BUILD_ID_MAX) {
      out->build_id_size = (uint8_t)note.n_descsz;
      memcpy(out->build_id, (const void *)(at + name_size), note.n_descsz);
      return true;
    }
    at += name_size + data_size;
  }
  return false;
}

static void read_build_id(const struct image *image, struct hp_module_image *out) {
  for (unsigned i = 0; i < image->count; i++) {
    uintptr_t start, end, segment_start, segment_end;
    if (image->headers[i].p_type != PT_NOTE || !place_segment(image, &image->headers[i], &start, &end)) continue;
    if (start % 4 != 0 || !find_readable(image, start, &segment_start, &segment_end) || end > segment_end) continue;
    if (take_build_id(start, end, out)) return;
  }
}

bool hp_module_image_read(const struct hp_object *object, struct hp_module_image *out) {
  struct image image;
  *out = (struct hp_module_image){.text_start = object->map_start, .text_end = object->map_end};
  if (!open_image(object, &image)) return false;
  read_text(&image, out);
  read_build_id(&image, out);
  uintptr_t start, end;
  if (object->eh_frame_hdr != NULL && find_readable(&image, (uintptr_t)object->eh_frame_hdr, &start, &end)) {
    out->tables = (struct hp_cfi_tables){
        .lo = (const uint8_t *)start, .hi = (const uint8_t *)end, .eh_frame_hdr = object->eh_frame_hdr};
  }
  return true;
}

/* Whole words of the first MiB: a segment's last bytes are padding as often as not. */
static uint64_t hash_range(uintptr_t start, uintptr_t end, uint64_t seed) {
  start = (start + 7) & ~(uintptr_t)7;
  if (end > start && end - start > HP_IMAGE_HASHED_MAX) end = start + HP_IMAGE_HASHED_MAX;
  return start < end ? hp_hash_words((const uintptr_t *)start, (end - start) / sizeof(uintptr_t), seed) : seed;
}

uint64_t hp_module_image_fingerprint(const struct hp_object *object) {
  struct image image;
  uint64_t hash = 1;
  uintptr_t start, end;
  if (!open_image(object, &image)) return hash;
  for (unsigned i = 0; i < image.count; i++) {
    const Elf64_Phdr *header = &image.headers[i];
    hash = hp_hash_words((const uintptr_t *)(const void *)header, sizeof *header / sizeof(uintptr_t), hash);
    bool is_table = header->p_type == PT_LOAD && (header->p_flags & (PF_R | PF_W | PF_X)) == PF_R;
    if (is_table && place_segment(&image, header, &start, &end)) hash = hash_range(start, end, hash);
  }
  uintptr_t tables = (uintptr_t)object->eh_frame_hdr;
  if (tables != 0 && find_readable(&image, tables, &start, &end)) hash = hash_range(tables, end, hash);
  return hash == 0 ? 1 : hash;
}
