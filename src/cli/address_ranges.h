/* SPDX-License-Identifier: MIT
 * address_ranges.h - which of many ranges of addresses, nested or overlapping, holds an address.
 *
 * Fill, sort once, then search. One thread at a time.
 */
#ifndef HP_ADDRESS_RANGES_H
#define HP_ADDRESS_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct hp_address_range {
  uint64_t low, high; /* [low, high) */
  uint64_t what;      /* the caller's */
  uint64_t reach;     /* the highest `high` up to here: how far back a search must go */
};

/* Zero-initialised is empty; the owner frees `ranges`. */
struct hp_address_ranges {
  struct hp_address_range *ranges;
  size_t count, capacity;
};

/* Adds a range; an empty one is left out. */
void hp_address_ranges_add(struct hp_address_ranges *list, uint64_t low, uint64_t high, uint64_t what);

/* After the last add, before the first find. */
void hp_address_ranges_sort(struct hp_address_ranges *list);

/* The innermost range that holds the address among the first *from (start with count); null: none. Moves *from to the one found, so
 * that the next call gives the next one further out. */
const struct hp_address_range *hp_address_ranges_find(const struct hp_address_ranges *list, uint64_t address, size_t *from);

#endif
