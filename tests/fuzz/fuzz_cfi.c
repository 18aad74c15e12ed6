/* SPDX-License-Identifier: MIT
 * fuzz_cfi.c - libFuzzer target: .eh_frame_hdr, .eh_frame and the ELF headers of an object are whatever the input says.
 * Nothing may be read outside of them, and every look-up ends. byte 0        bit 0: headers of an object (module_image.c),
 * else tables (cfi.c, rule.c, slow_step.c) bytes 1..4    the address looked up, relative to the start of the rest bytes 5..6
 * the header's place in the rest rest          in a block of exactly its size, so that the sanitizer sees one byte too far
 * Seeds: the sections of small real objects (fuzz_cfi_seed.sh). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "module_image.h"
#include "rule.h"
#include "slow_step.h"

enum { PREFIX = 7, PAGE = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_tables(const uint8_t *data, size_t size, uintptr_t address, uint16_t header) {
  if (header >= size) return;
  struct hp_cfi_tables tables = {.lo = data, .hi = data + size, .eh_frame_hdr = data + header};
  struct hp_cfi_row row;
  if (hp_cfi_find_row(&tables, address, &row) != HP_CFI_FOUND) return;
  hp_rule_from_row(&tables, &row, address);
  static const uintptr_t stack[512] = {1, 2, 3};
  struct hp_stack_range range = {.lo = (uintptr_t)stack, .hi = (uintptr_t)stack + sizeof(stack)};
  struct hp_registers registers = {.known = UINT32_MAX, .pc = address};
  for (int i = 0; i < HP_REG_COUNT; i++) registers.value[i] = (uintptr_t)&stack[i * 8];
  bool was_signal_frame;
  hp_slow_step(&tables, address, &registers, &range, &was_signal_frame);
}

static void fuzz_image(const uint8_t *data, size_t size, uintptr_t address, uint16_t header) {
  struct hp_module_image image;
  size_t pages = size / PAGE;
  if (pages == 0) return;
  uint8_t *copy = aligned_alloc(PAGE, pages * PAGE);
  if (copy == NULL) return;
  memcpy(copy, data, pages * PAGE);
  uintptr_t start = (uintptr_t)copy;
  struct hp_object object = {.map_start = start,
                             .map_end = start + pages * PAGE,
                             .load_bias = start - (address - (uintptr_t)data),
                             .eh_frame_hdr = copy + header % (pages * PAGE),
                             .name = ""};
  hp_module_image_read(&object, &image);
  free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < PREFIX + 16) return 0;
  int32_t distance;
  uint16_t header;
  memcpy(&distance, data + 1, sizeof(distance));
  memcpy(&header, data + 5, sizeof(header));
  size_t rest = size - PREFIX;
  uint8_t *block = malloc(rest);
  if (block == NULL) return 0;
  memcpy(block, data + PREFIX, rest);
  uintptr_t address = (uintptr_t)block + (uintptr_t)(intptr_t)distance;
  if (data[0] & 1) {
    fuzz_image(block, rest, address, header);
  } else {
    fuzz_tables(block, rest, address, header);
  }
  free(block);
  return 0;
}
