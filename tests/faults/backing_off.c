/* SPDX-License-Identifier: MIT
 * backing_off.c - claim: a periodic dump whose output fails is tried less and less often, after 1, 3, 7 ... 63 periods left out, and
 * every period again once it succeeds. With the testing library's clock. (HEAPPROF_PERIOD=10) */
#include <stdint.h>
#include <stdlib.h>

#include "heapprof.h"
#include "heapprof_testing.h"

static struct heapprof_stats now(void) {
  struct heapprof_stats stats = {0};
  if (heapprof_stats(&stats) != 0) exit(20);
  return stats;
}

static void let_periods_pass(int n) {
  for (int i = 0; i < n; i++) {
    heapprof_test_advance_clock((int64_t)10 * 1000000000);
    heapprof_test_force_sample();
    free(malloc(10));
  }
}

int main(void) {
  enum { EACCES_NUMBER = 13 };
  static const struct {
    int periods;
    uint64_t failed;
  } steps[] = {{1, 1}, {1, 1}, {1, 2}, {3, 2}, {1, 3}, {7, 3}, {1, 4}, {16, 5}, {32, 6}, {63, 6}, {1, 7}, {63, 7}, {1, 8}};
  let_periods_pass(3);
  uint64_t written = now().dumps;
  if (written != 3 || now().dumps_failed != 0) return 1;
  heapprof_test_fail_output(0, 0, EACCES_NUMBER, 0);
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    let_periods_pass(steps[i].periods);
    if (now().dumps_failed != steps[i].failed) return 10 + (int)i;
  }
  heapprof_test_fail_output(0, 0, 0, 0);
  let_periods_pass(63);
  if (now().dumps != written) return 2;
  let_periods_pass(5);
  return now().dumps == written + 5 && now().dumps_failed == 8 ? 0 : 3;
}
