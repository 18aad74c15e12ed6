/* SPDX-License-Identifier: MIT
 * A2: each thing has one owner and is freed once: when all blocks are freed there are no records, and the tables' memory is
 * back where it was. (Under address and leak sanitizer: the unit tests of src/record.) */
#include "behaviour.h"

enum { BLOCKS = 200000 };
static void *blocks[BLOCKS];

static void fill_and_empty(void) {
  for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(16);
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
}

/* A dump gives back the filters retired ten seconds before; when there are none left it retires one that is far too large. */
static void give_back_filters(void) {
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(heapprof_dump(NULL), 0);
    heapprof_test_advance_clock(11 * 1000000000ll);
  }
}

int main(void) {
  fill_and_empty(); /* outgrown arrays of the first growth */
  uint64_t live = stats_now().live_samples, lowest = UINT64_MAX, highest = 0;
  for (int round = 0; round < 10; round++) {
    fill_and_empty();
    struct heapprof_stats s = stats_now();
    CHECK_EQUAL(s.live_samples, live);
    CHECK_EQUAL(s.missed_frees, 0);
    if (s.metadata_bytes < lowest) lowest = s.metadata_bytes;
    if (s.metadata_bytes > highest) highest = s.metadata_bytes;
  }
  /* A full table is 12 MiB; retired filters wait for a dump, at most 64 of them. */
  dprintf(1, "metadata between %lu and %lu bytes\n", (unsigned long)lowest, (unsigned long)highest);
  give_back_filters();
  uint64_t empty = stats_now().metadata_bytes;
  for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(16);
  uint64_t full = stats_now().metadata_bytes;
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  give_back_filters();
  uint64_t after = stats_now().metadata_bytes;
  CHECK(full >= empty + BLOCKS * 32ul, "%lu of metadata for %d records", (unsigned long)(full - empty), BLOCKS);
  CHECK(after - empty < (full - empty) / 4, "%lu stay of %lu", (unsigned long)(after - empty),
        (unsigned long)(full - empty));
  return 0;
}
