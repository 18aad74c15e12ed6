/* SPDX-License-Identifier: MIT
 * module_image.h - what the program headers of a loaded object say, read from its mapping.
 *
 * Invariants  reads only the first page of the object and the PT_LOAD segments that its headers describe inside
 *             [map_start, map_end); headers that contradict themselves give an image without text, notes and tables.
 * Callers     modules.c, the fuzzer. Pure functions over mapped memory: any thread, async-signal-safe. */
#ifndef HP_MODULE_IMAGE_H
#define HP_MODULE_IMAGE_H

#include "cfi.h"
#include "compiler.h"

enum { HP_BUILD_ID_MAX = 64 };

struct hp_module_image {
  uintptr_t text_start; /* first to last executable segment, in pages of 4 KiB */
  uintptr_t text_end;
  uint64_t text_offset; /* file offset of text_start */
  uintptr_t load_bias;
  struct hp_cfi_tables tables; /* the readable segment that holds .eh_frame_hdr */
  uint8_t build_id_size;
  uint8_t build_id[HP_BUILD_ID_MAX];
};

/* map_start: the object's first mapped page, which begins with its ELF header; load_bias as the loader says; eh_frame_hdr as
 * the loader says, or NULL. False when the headers make no sense: then text is the whole mapping and there are no tables. */
bool hp_module_image_read(uintptr_t map_start, uintptr_t map_end, uintptr_t load_bias, const void *eh_frame_hdr,
                          struct hp_module_image *out);

#endif
