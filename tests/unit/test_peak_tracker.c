/* SPDX-License-Identifier: MIT
 * test_peak_tracker.c - the peak by copy on write, against a copy of everything at each new maximum,
 * which a forked child counts from what it got. */
#include <string.h>

#include "hot.h"
#include "peak_tracker.h"
#include "rng.h"
#include "unit_test.h"

struct hp_hot hp_hot;

enum { STACKS = 40, STEPS = 20000 };

static void the_peak_is_the_books_as_they_stood_at_the_maximum(void **state) {
  (void)state;
  static uint64_t live[STACKS], at_peak[STACKS];
  struct hp_stack *stacks[STACKS];
  hp_peak_tracker_enable();
  for (uintptr_t i = 0; i < STACKS; i++) {
    uintptr_t pc = 0x1000 + i;
    stacks[i] = hp_stack_table_intern(&pc, 1, HP_STACK_WHOLE, 0);
  }
  struct hp_rng rng = {11};
  uint64_t total = 0, peak = 0;
  for (int step = 0; step < STEPS; step++) {
    uint64_t i = hp_rng_next(&rng) % STACKS;
    bool up = hp_rng_next(&rng) % 100 < (uint64_t)(step / 1000 % 2 == 0 ? 70 : 30);
    uint64_t bytes = hp_rng_next(&rng) % 1000;
    if (up) {
      hp_peak_tracker_add_alloc(stacks[i], 1, bytes);
      live[i] += bytes;
      total += bytes;
    } else {
      if (bytes > live[i]) bytes = live[i];
      hp_peak_tracker_add_free(stacks[i], 0, bytes);
      live[i] -= bytes;
      total -= bytes;
    }
    if (total > peak) {
      peak = total;
      memcpy(at_peak, live, sizeof live);
    }
    if (step % 1500 == 1499) { /* in a falling stretch, too */
      hp_peak_tracker_after_fork();
      peak = total;
      memcpy(at_peak, live, sizeof live);
    }
    if (step % 7 != 0) continue;
    hp_peak_tracker_lock();
    for (int k = 0; k < STACKS; k++) {
      struct hp_stack_counts v;
      hp_peak_tracker_get(stacks[k], &v);
      assert_int_equal(v.alloc_bytes - v.freed_bytes, at_peak[k]);
    }
    struct hp_moment moment = {0};
    assert_int_equal(!hp_peak_tracker_is_past(&moment), total == peak && memcmp(at_peak, live, sizeof live) == 0);
    assert_int_equal(moment.wall_nanos == 0, total == peak && memcmp(at_peak, live, sizeof live) == 0);
    hp_peak_tracker_unlock();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_peak_is_the_books_as_they_stood_at_the_maximum)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
