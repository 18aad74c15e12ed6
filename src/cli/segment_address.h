/* SPDX-License-Identifier: MIT
 * segment_address.h - from an address of the profiled process to the one the file is linked at.
 *
 * A profile says of each mapping where it begins, in memory and in the file. Profilers mean two things by it: what mmap mapped (one
 * segment), or, as our library does, the module from its first segment with code to the end of its last. Both are linear in
 * linked addresses from the segment that the offset lies in.
 */
#ifndef HP_SEGMENT_ADDRESS_H
#define HP_SEGMENT_ADDRESS_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A PT_LOAD. */
struct hp_segment {
  uint64_t offset; /* in the file */
  uint64_t address;
  uint64_t memory_bytes;
  uint64_t align; /* power of two */
  bool is_code;
};

/* An address of the profiled process, and the mapping it lies in. */
struct hp_symbol_place {
  uint64_t address;
  uint64_t mapping_start;
  uint64_t mapping_offset; /* in the file */
};

enum { HP_SEGMENTS_MAX = 64 };

/* The segments of a file, in its order; returns how many. Those of a debug file made by objcopy --only-keep-debug have lost their
 * offsets, and get them anew as every linker gives them: as early as they can lie. */
size_t hp_segments_read(Elf *elf, struct hp_segment segments[HP_SEGMENTS_MAX]);

/* The second half of that: each offset is the first one behind the segment before that is congruent to the address. */
void hp_segments_place(struct hp_segment *segments, size_t count);

/* The linked address of a place; the place's own where the mapping fits no segment with code. */
uint64_t hp_segments_find(const struct hp_segment *segments, size_t count, const struct hp_symbol_place *place);

#endif
