/* SPDX-License-Identifier: MIT
 * elf_symbols.c - see elf_symbols.h.
 * The symbol table is neither sorted nor kept. Each symbol looks for the first target at or above it; the targets it covers
 * follow. For symbols without a size it is enough to note the last one below each gap between targets: target i's nearest
 * symbol is the greatest of the notes of targets 0..i. */
#include "elf_symbols.h"

#include <errno.h>
#include <string.h>

enum {
  SYMBOLS_AT_ONCE = 2048, /* 48 KiB */
  STEPS_MAX = 64 * 1000 * 1000,
  NAME_READ_BYTES = 256, /* most names fit; longer ones take a second read */
};

/* name[0..n): the name at `offset`, 0 behind it. Returns its length. */
static size_t read_name(const struct hp_elf_names *names, uint32_t offset, char *to) {
  if (offset >= names->table.strings_bytes) return 0;
  uint64_t available = names->table.strings_bytes - offset;
  size_t want = NAME_READ_BYTES;
  for (;;) {
    if (want > available) want = (size_t)available;
    if (!hp_elf_read(names->elf, names->table.strings_offset + offset, to, want)) return 0;
    const char *end = memchr(to, 0, want);
    size_t n = end != NULL ? (size_t)(end - to) : want;
    const char *version = memchr(to, '@', n);
    if (version != NULL && version != to) n = (size_t)(version - to);
    to[n] = 0;
    if (n < want || want == available || want == HP_SYMBOL_NAME_MAX) return n;
    want = HP_SYMBOL_NAME_MAX;
  }
}

static size_t leading_underscores(const char *name) {
  size_t n = 0;
  while (name[n] == '_') n++;
  return n;
}

/* Is the name at `a` to be preferred to the one at `b`, of the same place and rank? */
static bool is_better_name(struct hp_elf_names *names, uint32_t a, uint32_t b) {
  if (names->budget < NAME_READ_BYTES) return false;
  names->budget -= NAME_READ_BYTES; /* a read costs about so many steps */
  size_t length_a = read_name(names, a, names->name);
  size_t length_b = read_name(names, b, names->other);
  if (length_a == 0 || length_b == 0) return length_b == 0 && length_a != 0;
  size_t under_a = leading_underscores(names->name);
  size_t under_b = leading_underscores(names->other);
  if (under_a != under_b) return under_a < under_b;
  if (length_a != length_b) return length_a < length_b;
  return memcmp(names->name, names->other, length_a) < 0;
}

/* Put `found` in place of `old` if it is better. */
static void offer(struct hp_elf_names *names, struct hp_elf_candidate *old, const struct hp_elf_candidate *found) {
  if (old->rank != 0) {
    if (found->value < old->value) return;
    if (found->value == old->value) {
      if (found->rank < old->rank) return;
      if (found->rank == old->rank && (found->name == old->name || !is_better_name(names, found->name, old->name))) return;
    }
  }
  *old = *found;
}

/* The first of n sorted targets at or above `address`; n: none. */
static size_t first_at_or_above(const struct hp_elf_target *targets, size_t n, uint64_t address) {
  size_t low = 0;
  size_t high = n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (targets[middle].address < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* Note the last function below the target. A sized one is never the answer (it would cover the target), it only hides what
 * is below it and the ones without a size at its own place: its name does not matter. */
static void note_nearest(struct hp_elf_names *names, struct hp_elf_target *target, const struct hp_elf_candidate *found,
                         bool is_sized) {
  bool is_first = target->nearest.rank == 0 || found->value > target->nearest.value;
  if (!is_first && found->value < target->nearest.value) return;
  if (is_first || is_sized) {
    target->nearest = *found;
    target->nearest_is_sized = is_sized;
  } else if (!target->nearest_is_sized) {
    offer(names, &target->nearest, found);
  }
}

static void match_symbol(struct hp_elf_names *names, const Elf64_Sym *symbol, struct hp_elf_target *targets, size_t n) {
  unsigned type = ELF64_ST_TYPE(symbol->st_info);
  if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF || symbol->st_name == 0) return;
  if (symbol->st_value > targets[n - 1].address) return;
  struct hp_elf_candidate found = {.value = symbol->st_value,
                                   .name = symbol->st_name,
                                   .section = symbol->st_shndx,
                                   .rank = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ? 1 : 2};
  size_t i = first_at_or_above(targets, n, symbol->st_value);
  note_nearest(names, &targets[i], &found, symbol->st_size != 0);
  for (; i < n && targets[i].address - symbol->st_value < symbol->st_size && names->budget > 0; i++) {
    names->budget--;
    offer(names, &targets[i].covering, &found);
  }
}

static bool has_buffers(struct hp_elf_names *names, struct hp_arena *scratch) {
  if (names->block != NULL) return true;
  names->name = hp_arena_alloc(scratch, HP_SYMBOL_NAME_MAX + 1);
  names->other = hp_arena_alloc(scratch, HP_SYMBOL_NAME_MAX + 1);
  if (names->name == NULL || names->other == NULL) return false;
  names->block = hp_arena_alloc(scratch, SYMBOLS_AT_ONCE * sizeof(Elf64_Sym));
  return names->block != NULL;
}

int hp_elf_names_open(struct hp_elf_names *names, const struct hp_elf *elf, struct hp_arena *scratch) {
  if (!hp_elf_find_symbols(elf, &names->table)) return -ENOENT;
  names->elf = elf;
  names->budget = STEPS_MAX;
  return has_buffers(names, scratch) ? 0 : -ENOMEM;
}

void hp_elf_names_match(struct hp_elf_names *names, struct hp_elf_target *targets, size_t n) {
  uint64_t count = names->table.count < HP_ELF_SYMBOLS_MAX ? names->table.count : HP_ELF_SYMBOLS_MAX;
  Elf64_Sym *symbols = names->block;
  for (uint64_t first = 0; n != 0 && first < count; first += SYMBOLS_AT_ONCE) {
    size_t in_block = count - first < SYMBOLS_AT_ONCE ? (size_t)(count - first) : SYMBOLS_AT_ONCE;
    uint64_t offset = names->table.offset + first * sizeof symbols[0];
    if (!hp_elf_read(names->elf, offset, symbols, in_block * sizeof symbols[0])) return;
    for (size_t i = 0; i < in_block; i++) match_symbol(names, &symbols[i], targets, n);
  }
  for (size_t i = 1; i < n; i++) {
    const struct hp_elf_target *below = &targets[i - 1];
    if (below->nearest.rank == 0) continue;
    if (targets[i].nearest.rank != 0 && targets[i].nearest.value >= below->nearest.value) continue;
    targets[i].nearest = below->nearest;
    targets[i].nearest_is_sized = below->nearest_is_sized;
  }
}

size_t hp_elf_names_read(struct hp_elf_names *names, const struct hp_elf_target *target, uint64_t last_key,
                         size_t last_length, uint64_t *out_key) {
  const struct hp_elf_candidate *answer = &target->covering;
  if (answer->rank == 0) {
    if (target->nearest.rank == 0 || target->nearest_is_sized) return 0;
    answer = &target->nearest;
    uint64_t end = hp_elf_section_end(names->elf, answer->section, answer->value);
    if (target->address >= end) return 0;
  }
  *out_key = answer->name;
  if (*out_key == last_key) return last_length;
  return read_name(names, answer->name, names->name);
}
