/* SPDX-License-Identifier: MIT
 * address_ranges.c - see address_ranges.h.
 */
#include "address_ranges.h"

#include <stdlib.h>

#include "cli_memory.h"

static int compare_ranges(const void *a, const void *b) {
  const struct hp_address_range *x = a, *y = b;
  if (x->low != y->low) return x->low < y->low ? -1 : 1;
  return (x->high < y->high) - (x->high > y->high); /* the enclosing one first */
}

void hp_address_ranges_add(struct hp_address_ranges *list, uint64_t low, uint64_t high, uint64_t what) {
  if (low >= high) return;
  hp_array_reserve(&list->ranges, &list->capacity, list->count + 1, sizeof *list->ranges);
  list->ranges[list->count++] = (struct hp_address_range){low, high, what, 0};
}

void hp_address_ranges_sort(struct hp_address_ranges *list) {
  uint64_t reach = 0;
  if (list->count != 0) qsort(list->ranges, list->count, sizeof *list->ranges, compare_ranges);
  for (size_t i = 0; i < list->count; i++) {
    if (list->ranges[i].high > reach) reach = list->ranges[i].high;
    list->ranges[i].reach = reach;
  }
}

const struct hp_address_range *hp_address_ranges_find(const struct hp_address_ranges *list, uint64_t address, size_t *from) {
  size_t low = 0, high = *from;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (list->ranges[middle].low <= address)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low > 0; low--) {
    const struct hp_address_range *range = &list->ranges[low - 1];
    if (range->reach <= address) break;
    if (range->high > address) {
      *from = low - 1;
      return range;
    }
  }
  *from = 0;
  return NULL;
}
