/* SPDX-License-Identifier: MIT
 * live_filter.c - see live_filter.h. A filter that is too full (or far too empty) is replaced: counters are made anew from the
 * records, then the word in hp_hot is published. A reader that still holds the old word sees the old counters, which stay as
 * they were at that moment: every block inserted before is in them, and of a block inserted later it cannot know (whoever
 * handed it the pointer also made it see the new word). So old counters are given back only after a while. */
#include "live_filter.h"

#include <sys/mman.h>
#include <time.h>

#include "budget.h"
#include "sys.h"

enum {
  FIRST_BITS = 12, /* 4096 counters: a page */
  MAX_BITS = 28,
  CACHED_BITS = 17, /* up to 2^17 counters (they stay in L2): at most 1/32 full */
  SPARSE_BITS = 20, /* up to 2^20: at most 1/16 full; above: at most 1/8 */
  RETIRE_SECONDS = 10,
};

struct hp_live_filter hp_live_filter;

static struct hp_live_retired retired[HP_LIVE_RETIRED_MAX];
static unsigned retired_count; /* atomic */

static size_t bytes_of(unsigned bits) { return ((size_t)1 << bits) + HP_FILTER_SLACK; }

/* How many records a filter of so many counters may hold. */
static uint64_t capacity_of(unsigned bits) {
  return (uint64_t)1 << (bits - (bits <= CACHED_BITS ? 5 : bits <= SPARSE_BITS ? 4 : 3));
}

bool hp_live_filter_is_too_full(uint64_t records) { return records > capacity_of(hp_load_relaxed(&hp_live_filter.bits)); }

static unsigned bits_for(uint64_t records) {
  unsigned bits = FIRST_BITS;
  while (bits < MAX_BITS && capacity_of(bits) < records * 2) bits++;
  return bits;
}

bool hp_live_filter_is_misfit(uint64_t records) {
  if (!hp_live_filter_exists()) return true;
  unsigned wanted = bits_for(records), bits = hp_load_relaxed(&hp_live_filter.bits);
  return wanted + 3 < bits || (wanted != bits && hp_live_filter_is_too_full(records));
}

static uint64_t monotonic_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint64_t)now.tv_sec;
}

static void retire(void) {
  if (hp_live_filter.memory == NULL) return;
  if (retired_count == HP_LIVE_RETIRED_MAX) return; /* stays mapped for good: 64 replacements within ten seconds */
  retired[retired_count].at = hp_live_filter.memory;
  retired[retired_count].bytes = bytes_of(hp_live_filter.bits);
  retired[retired_count].since_seconds = monotonic_seconds();
  hp_store_relaxed(&retired_count, retired_count + 1);
}

static void replace(unsigned bits, void (*count_all)(void)) {
  size_t bytes = bytes_of(bits);
  if (!hp_memory_reserve(bytes)) return;
  void *fresh = hp_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (hp_sys_failed(fresh)) {
    hp_memory_release(bytes);
    return;
  }
  retire();
  hp_live_filter.memory = fresh;
  hp_store_relaxed(&hp_live_filter.bits, bits);
  hp_store_relaxed(&hp_live_filter.counters, hp_filter_place(fresh, bits));
  count_all();
  hp_store_release(&hp_hot.filter, (uintptr_t)hp_live_filter.counters);
}

void hp_live_filter_fit(uint64_t records, void (*count_all)(void)) {
  if (hp_live_filter_is_misfit(records)) replace(bits_for(records), count_all);
}

unsigned hp_live_filter_retired(void) { return hp_load_relaxed(&retired_count); }

unsigned hp_live_filter_take_retired(uint64_t now_seconds, struct hp_live_retired *out) {
  unsigned kept = 0, taken = 0;
  for (unsigned i = 0; i < retired_count; i++) {
    if (now_seconds < retired[i].since_seconds + RETIRE_SECONDS) {
      retired[kept++] = retired[i];
    } else {
      out[taken++] = retired[i];
    }
  }
  hp_store_relaxed(&retired_count, kept);
  return taken;
}

void hp_live_filter_give_back(const struct hp_live_retired *list, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    /* Emptied, not unmapped: a reader that slept all the while must find memory there. */
    hp_sys_madvise(list[i].at, list[i].bytes, MADV_DONTNEED);
    hp_memory_release(list[i].bytes);
  }
}
