/* SPDX-License-Identifier: MIT
 * code_bytes.c - see code_bytes.h. */
#include "code_bytes.h"

#include "stack_bounds.h"

/* Are there n readable bytes of code at this address? */
static bool is_readable(uintptr_t address, size_t n) {
  uintptr_t first = address & ~(uintptr_t)7;
  uintptr_t last = (address + n - 1) & ~(uintptr_t)7;
  return last >= first && hp_stack_probe(first) && (first == last || hp_stack_probe(last));
}

HP_READS_STACK bool hp_code_is_after_call(uintptr_t pc) {
  uint8_t before[8];
  if (pc < sizeof(before) || !is_readable(pc - sizeof(before), sizeof(before))) return false;
  for (size_t i = 0; i < sizeof(before); i++) before[i] = ((const uint8_t *)(pc - sizeof(before)))[i];
  return hp_arch_is_after_call(before);
}

HP_READS_STACK bool hp_code_is_restorer(uintptr_t pc) {
  static const uint8_t expected[HP_RESTORER_BYTES] = HP_RESTORER_CODE;
  if (!is_readable(pc, HP_RESTORER_BYTES)) return false;
  for (size_t i = 0; i < HP_RESTORER_BYTES; i++) {
    if (((const uint8_t *)pc)[i] != expected[i]) return false;
  }
  return true;
}
