/* SPDX-License-Identifier: MIT
 * module_image.h - what the program headers of a loaded object say, read from its mapping.
 *
 * Invariants  reads only the headers (in the first page of the object, if not known from elsewhere) and the PT_LOAD segments
 *             that its headers describe inside [map_start, map_end); headers that contradict themselves give an image without
 *             text, notes and tables.
 * Callers     modules.c, the fuzzer. Pure functions over mapped memory: any thread, async-signal-safe. */
#ifndef HP_MODULE_IMAGE_H
#define HP_MODULE_IMAGE_H

#include "cfi.h"
#include "compiler.h"
#include "object_find.h"

enum { HP_BUILD_ID_MAX = 64 };

struct hp_module_image {
  uintptr_t text_start; /* first to last executable segment, in pages of 4 KiB */
  uintptr_t text_end;
  uint64_t text_offset;        /* file offset of text_start */
  struct hp_cfi_tables tables; /* the readable segment that holds .eh_frame_hdr */
  uint8_t build_id_size;
  uint8_t build_id[HP_BUILD_ID_MAX];
};

/* Fills *out for what the loader says of an object. Its program headers are found behind the ELF header at map_start, unless
 * the loader knows them. False when they make no sense: then text is the whole mapping and there are no tables. */
bool hp_module_image_read(const struct hp_object *object, struct hp_module_image *out);

/* What tells a file without a build id from another: a hash of what can be read of its tables (names, read-only data, unwind
 * data), of a few MiB at most; never 0. Code is not looked at: what the program may have done to its pages is unknown. */
uint64_t hp_module_image_fingerprint(const struct hp_object *object);

#endif
