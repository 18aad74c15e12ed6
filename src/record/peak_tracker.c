/* SPDX-License-Identifier: MIT
 * peak_tracker.c - see peak_tracker.h. */
#include "peak_tracker.h"

#include <string.h>

#include "heap.h"
#include "lock.h"
#include "thread_state.h"

enum { PAGE_ENTRIES = 256, PAGES = 65536 };

struct saved {
  struct hp_stack_counts values;
  uint64_t generation; /* 0: never saved */
};

static struct hp_lock lock;
static bool is_on;
static struct saved *pages[PAGES];
static uint64_t generation = 1;
static bool is_at_peak = true;
static uint64_t inuse_bytes, peak_bytes; /* fixed point */
static struct hp_moment peak;

void hp_peak_tracker_enable(void) { is_on = true; }
bool hp_peak_tracker_is_on(void) { return is_on; }

void hp_peak_tracker_lock(void) {
  if (!hp_thread.holds_all_locks) hp_lock_acquire(&lock);
}
void hp_peak_tracker_unlock(void) {
  if (!hp_thread.holds_all_locks) hp_lock_release(&lock);
}

static struct saved *saved_of(uint32_t id) {
  struct saved *page = id / PAGE_ENTRIES < PAGES ? pages[id / PAGE_ENTRIES] : NULL;
  return page == NULL ? NULL : &page[id % PAGE_ENTRIES];
}

/* The counters of this stack are about to change while the peak lies in the past. Without memory its part of the peak is
 * what it holds now. */
static void save(const struct hp_stack *stack) {
  struct saved *s = saved_of(stack->id);
  if (s == NULL && stack->id / PAGE_ENTRIES < PAGES) {
    struct saved *page = hp_heap_alloc_aligned_zero(64, PAGE_ENTRIES * sizeof *page);
    if (page == NULL) return;
    pages[stack->id / PAGE_ENTRIES] = page;
    s = &page[stack->id % PAGE_ENTRIES];
  }
  if (s == NULL || s->generation == generation) return;
  hp_stack_load(stack, &s->values);
  s->generation = generation;
}

void hp_peak_tracker_add_alloc(struct hp_stack *stack, uint64_t objects, uint64_t bytes) {
  hp_peak_tracker_lock();
  inuse_bytes += bytes;
  if (inuse_bytes > peak_bytes) {
    peak_bytes = inuse_bytes;
    if (!is_at_peak) generation++;
    is_at_peak = true;
  } else if (!is_at_peak) {
    save(stack);
  }
  hp_stack_add_alloc(stack, objects, bytes);
  hp_peak_tracker_unlock();
}

void hp_peak_tracker_add_free(struct hp_stack *stack, uint64_t objects, uint64_t bytes) {
  hp_peak_tracker_lock();
  if (bytes != 0 || !is_at_peak) {
    if (is_at_peak) {
      peak = hp_moment_now();
      is_at_peak = false;
    }
    save(stack);
  }
  inuse_bytes -= bytes;
  hp_stack_add_free(stack, objects, bytes);
  hp_peak_tracker_unlock();
}

void hp_peak_tracker_get(const struct hp_stack *stack, struct hp_stack_counts *out) {
  const struct saved *s = saved_of(stack->id);
  if (!is_at_peak && s != NULL && s->generation == generation) {
    *out = s->values;
  } else {
    hp_stack_load(stack, out);
  }
}

bool hp_peak_tracker_is_past(struct hp_moment *out) {
  if (!is_at_peak) *out = peak;
  return !is_at_peak;
}

void hp_peak_tracker_after_fork(void) {
  if (!is_at_peak) generation++;
  is_at_peak = true;
  peak_bytes = inuse_bytes;
}
