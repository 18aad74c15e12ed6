/* SPDX-License-Identifier: MIT
 * string_interner.c - see string_interner.h. One block: entries by number, and behind them twice as many slots of the hash
 * table, each the number of an entry (0: empty; "" is not in it). A full block is copied into one twice as large. */
#include "string_interner.h"

#include <string.h>

#include "hash.h"
#include "utf8.h"

enum { INTERNER_ENTRIES_MIN = 256 };

struct entry {
  const char *bytes;
  uint32_t length;
  uint32_t hash;
};

struct hp_interner_table {
  uint32_t count;    /* entries, "" included */
  uint32_t capacity; /* power of two */
  uint32_t *slots;   /* 2 * capacity of them, in this block */
  struct entry entries[];
};

static uint32_t hash_bytes(const char *bytes, size_t n) {
  uint64_t sum = n;
  uint64_t word;
  for (; n >= sizeof word; n -= sizeof word, bytes += sizeof word) {
    memcpy(&word, bytes, sizeof word);
    sum = (sum ^ word) * HP_HASH_MULTIPLIER;
    sum ^= sum >> 29;
  }
  word = 0;
  memcpy(&word, bytes, n);
  return (uint32_t)hp_hash_mix(sum ^ word);
}

static void link_entry(struct hp_interner_table *table, uint32_t id) {
  uint32_t mask = 2 * table->capacity - 1;
  uint32_t i = table->entries[id].hash & mask;
  while (table->slots[i] != 0) i = (i + 1) & mask;
  table->slots[i] = id;
}

static bool grow(struct hp_string_interner *interner) {
  const struct hp_interner_table *old = interner->table;
  uint64_t capacity = old == NULL ? INTERNER_ENTRIES_MIN : (uint64_t)old->capacity * 2;
  if (capacity > (uint64_t)1 << 30) return false;
  struct hp_interner_table *table = hp_arena_alloc(
      interner->arena, sizeof *table + capacity * sizeof table->entries[0] + 2 * capacity * sizeof table->slots[0]);
  if (table == NULL) return false;
  table->capacity = (uint32_t)capacity;
  table->slots = (uint32_t *)&table->entries[capacity];
  table->count = 1;
  table->entries[0].bytes = "";
  if (old != NULL) {
    memcpy(table->entries, old->entries, old->count * sizeof old->entries[0]);
    table->count = old->count;
    for (uint32_t id = 1; id < table->count; id++) link_entry(table, id);
  }
  interner->table = table;
  return true;
}

static uint32_t find(const struct hp_interner_table *table, const char *bytes, size_t n, uint32_t hash) {
  if (table == NULL) return 0;
  uint32_t mask = 2 * table->capacity - 1;
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    uint32_t id = table->slots[i];
    if (id == 0) return 0;
    const struct entry *entry = &table->entries[id];
    if (entry->hash == hash && entry->length == n && memcmp(entry->bytes, bytes, n) == 0) return id;
  }
}

/* Cut to the longest allowed length, not inside a sequence. */
static size_t cut(const char *bytes, size_t n) {
  if (n <= HP_STRING_BYTES_MAX) return n;
  n = HP_STRING_BYTES_MAX;
  for (int i = 0; i < 3 && ((unsigned char)bytes[n] & 0xC0) == 0x80; i++) n--;
  return n;
}

uint32_t hp_string_interner_add(struct hp_string_interner *interner, const char *bytes, size_t n, bool borrow) {
  n = cut(bytes, n);
  if (hp_utf8_valid_prefix(bytes, n) != n) {
    bytes = hp_utf8_clean(interner->arena, bytes, n, &n);
    if (bytes == NULL) return HP_STRING_NONE;
    n = cut(bytes, n);
    borrow = true;
  }
  if (n == 0) return 0;
  uint32_t hash = hash_bytes(bytes, n);
  uint32_t id = find(interner->table, bytes, n, hash);
  if (id != 0) return id;
  if (interner->table == NULL || interner->table->count == interner->table->capacity) {
    if (!grow(interner)) return HP_STRING_NONE;
  }
  if (!borrow) bytes = hp_arena_copy(interner->arena, bytes, n);
  if (bytes == NULL) return HP_STRING_NONE;
  struct hp_interner_table *table = interner->table;
  id = table->count;
  table->entries[id] = (struct entry){.bytes = bytes, .length = (uint32_t)n, .hash = hash};
  table->count = id + 1;
  link_entry(table, id);
  return id;
}

uint32_t hp_string_interner_count(const struct hp_string_interner *interner) {
  return interner->table == NULL ? 1 : interner->table->count;
}

const char *hp_string_interner_get(const struct hp_string_interner *interner, uint32_t id, size_t *out_n) {
  if (interner->table == NULL) {
    *out_n = 0;
    return "";
  }
  *out_n = interner->table->entries[id].length;
  return interner->table->entries[id].bytes;
}
