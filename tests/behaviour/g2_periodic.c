/* SPDX-License-Identifier: MIT
 * G2: the first periodic dump comes after one period; no drift, and no pile-up after a long sleep; a dump that takes longer than
 * the period is not followed by the next at once. Run with HEAPPROF_PERIOD=100; the clock is moved by hand. */
#include "behaviour.h"

#define SECOND ((int64_t)1000000000)

static int64_t due_at(void) {
  bool is_due;
  return heapprof_test_period_check(INT64_MIN / 2, &is_due);
}

static void take_long(void) { heapprof_test_advance_clock(260 * SECOND); }

/* In which a program without threads would do nothing but dump. */
static void check_slow_dumps(int64_t period) {
  heapprof_test_pause_dump(take_long);
  heapprof_test_advance_clock(due_at() - heapprof_test_clock() + 1);
  int64_t due = due_at();
  free(malloc(10));
  CHECK_EQUAL(stats_now().dumps, 16);
  int64_t left = due_at() - heapprof_test_clock();
  CHECK(left > 2 * period && left < 4 * period, "after a dump of 260 s the program has %ld s", (long)(left / SECOND));
  CHECK_EQUAL((due_at() - due) % period, 0);
  free(malloc(10));
  CHECK_EQUAL(stats_now().dumps, 16);
  heapprof_test_pause_dump(NULL);
}

int main(void) {
  int64_t period = 100 * SECOND, now = heapprof_test_clock(), first = due_at();
  bool is_due;
  CHECK(first <= now + period && first > now + period - 20 * SECOND, "first due in %ld ns", (long)(first - now));
  heapprof_test_period_check(first - 1, &is_due);
  CHECK(!is_due, "too early");
  CHECK_EQUAL(stats_now().dumps, 0);
  /* Late by a little: the next one is not late. */
  heapprof_test_period_check(first + 3 * SECOND, &is_due);
  CHECK(is_due, "it was due");
  CHECK_EQUAL(due_at() - first, period);
  heapprof_test_period_check(first + 3 * SECOND, &is_due);
  CHECK(!is_due, "once");
  /* Asleep for ten periods: one dump, not ten. */
  heapprof_test_period_check(first + 10 * period + 7, &is_due);
  CHECK(is_due, "it was due");
  CHECK_EQUAL(due_at() - first, 11 * period);
  /* And it really dumps: in a program without threads, at the end of a sampled call. */
  heapprof_test_advance_clock(due_at() - heapprof_test_clock() + 1);
  void *volatile p = malloc(10);
  CHECK_EQUAL(stats_now().dumps, 1);
  free(p);
  CHECK_EQUAL(stats_now().dumps, 1);
  for (int i = 0; i < 14; i++) { /* HEAPPROF_KEEP: the last ones stay */
    heapprof_test_advance_clock(period);
    free(malloc(10));
  }
  CHECK_EQUAL(stats_now().dumps, 15);
  check_slow_dumps(period);
  return 0;
}
