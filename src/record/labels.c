/* SPDX-License-Identifier: MIT
 * labels.c - see labels.h. The names are an append-only table: readers need no lock. */
#include "labels.h"

#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "lock.h"
#include "recorder.h"
#include "sys.h"
#include "thread_state.h"

static struct hp_lock lock; /* appends */
static char names[HP_LABEL_NAMES][HP_LABEL_NAME_BYTES];
static uint32_t name_count = 1; /* atomic; 0 is [other] */

static uint16_t find_name(const char *name, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    if (strncmp(names[i], name, HP_LABEL_NAME_BYTES) == 0) return (uint16_t)i;
  }
  return 0;
}

/* The thread may be renamed at any time, so the kernel is asked at each sample; the last answer is tried first. */
static uint16_t current_name_id(void) {
  char name[HP_LABEL_NAME_BYTES] = {0};
  if (hp_syscall2(SYS_prctl, PR_GET_NAME, name) != 0) return 0;
  uint16_t id = hp_thread.name_id;
  if (id != 0 && strncmp(names[id], name, HP_LABEL_NAME_BYTES) == 0) return id;
  uint32_t count = hp_load_acquire(&name_count);
  id = find_name(name, count);
  if (id == 0 && count < HP_LABEL_NAMES) {
    hp_lock_acquire(&lock);
    id = find_name(name, name_count);
    if (id == 0 && name_count < HP_LABEL_NAMES) {
      id = (uint16_t)name_count;
      memcpy(names[id], name, HP_LABEL_NAME_BYTES);
      hp_store_release(&name_count, name_count + 1);
    }
    hp_lock_release(&lock);
  }
  hp_thread.name_id = id;
  return id;
}

void hp_labels_lock(void) { hp_lock_acquire(&lock); }
void hp_labels_unlock(void) { hp_lock_release(&lock); }

uint64_t hp_labels_size_class(uint64_t size) {
  if (size <= HP_LABEL_SIZES_EXACT) return size;
  int top = 63 - __builtin_clzll(size);
  return size & ~(((uint64_t)1 << (top - 3)) - 1);
}

uint64_t hp_labels_key(unsigned labels, uint64_t size) {
  uint64_t key = 0;
  if ((labels & HP_LABEL_SIZE) != 0) key = (hp_labels_size_class(size) + 1) << 16;
  if ((labels & HP_LABEL_THREAD) != 0) key |= current_name_id();
  return key;
}

const char *hp_labels_thread_name(uint16_t id) {
  return id == 0 || id >= hp_load_acquire(&name_count) ? "[other]" : names[id];
}

static const struct {
  uint32_t below_seconds;
  const char *name;
} ages[HP_LABEL_AGES] = {{1, "<1s"},       {10, "1s-10s"},      {60, "10s-1m"},       {600, "1m-10m"},
                         {3600, "10m-1h"}, {6 * 3600, "1h-6h"}, {24 * 3600, "6h-1d"}, {UINT32_MAX, ">=1d"}};

uint32_t hp_labels_age_bucket(uint32_t seconds) {
  uint32_t b = 0;
  while (b < HP_LABEL_AGES - 1 && seconds >= ages[b].below_seconds) b++;
  return b;
}

const char *hp_labels_age_name(uint32_t bucket) { return ages[bucket].name; }

uint32_t hp_labels_now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint32_t)now.tv_sec;
}
