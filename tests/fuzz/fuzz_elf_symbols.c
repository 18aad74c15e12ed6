/* SPDX-License-Identifier: MIT
 * fuzz_elf_symbols.c - any bytes as an ELF file, in memory (a sanitizer sees its end): build id, symbols, names.
 *   clang -fsanitize=fuzzer,address,undefined -std=gnu11 -D_GNU_SOURCE -Isrc/base -Isrc/memory -Isrc/export -Itests/export \
 *     tests/fuzz/fuzz_elf_symbols.c src/export/elf_symbols.c src/export/elf_reader.c src/memory/arena.c \
 *     tests/export/fake_memory.c
 * Seeds: small shared objects, e.g. of an empty C file. */
#include <stdlib.h>

#include "elf_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TARGETS = 32 };

static void use_names(const struct hp_elf *elf, struct hp_arena *arena) {
  struct hp_elf_names names = {0};
  struct hp_elf_target targets[TARGETS] = {0};
  if (hp_elf_names_open(&names, elf, arena) != 0) return;
  names.budget = 100000; /* many small inputs rather than few slow ones */
  for (uint64_t i = 0; i < TARGETS; i++) targets[i].address = i < TARGETS / 2 ? i * i * 16 : 0x1000 + i * 64;
  hp_elf_names_match(&names, targets, TARGETS);
  for (size_t i = 0; i < TARGETS; i++) {
    uint64_t key;
    size_t n = hp_elf_names_read(&names, &targets[i], UINT64_MAX, 0, &key);
    if (n > HP_SYMBOL_NAME_MAX || (n != 0 && names.name[n] != 0)) abort();
    if (n == 0) continue;
    const struct hp_elf_candidate *answer = targets[i].covering.rank != 0 ? &targets[i].covering : &targets[i].nearest;
    if (answer->value > targets[i].address) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct hp_arena arena = {0};
  struct hp_elf elf;
  uint8_t id[20];
  if (hp_elf_open_memory(&elf, data, size) == 0) {
    if (hp_elf_build_id(&elf, id, sizeof id) > sizeof id) abort();
    use_names(&elf, &arena);
  }
  hp_arena_reset(&arena);
  return 0;
}
