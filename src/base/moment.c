/* SPDX-License-Identifier: MIT
 * moment.c - see moment.h. */
#include "moment.h"

#include <time.h>

/* More than any thread waits between the readings of its two clocks as a rule; less than anybody sets a clock by that matters. */
#define TOLERANCE_NANOS ((int64_t)1000000000)

static int64_t read_clock(clockid_t clock) {
  struct timespec now = {0};
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct hp_moment hp_moment_now(void) {
  return (struct hp_moment){.wall_nanos = read_clock(CLOCK_REALTIME), .elapsed_nanos = read_clock(CLOCK_BOOTTIME)};
}

int64_t hp_moment_between(struct hp_moment from, struct hp_moment to) {
  int64_t wall = to.wall_nanos - from.wall_nanos, elapsed = to.elapsed_nanos - from.elapsed_nanos;
  bool was_set = wall - elapsed > TOLERANCE_NANOS || elapsed - wall > TOLERANCE_NANOS;
  int64_t nanos = was_set ? elapsed : wall;
  return nanos > 0 ? nanos : 0;
}
