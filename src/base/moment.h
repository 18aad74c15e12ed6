/* SPDX-License-Identifier: MIT
 * moment.h - a moment as the calendar has it, and by a clock that goes on evenly although the calendar is set (a device without a
 * battery starts in 1970). Any thread; async-signal-safe.
 *
 * The even clock is the wall clock less every jump of it by more than a second against CLOCK_BOOTTIME, which is never set and goes on
 * while the machine sleeps. So what lies between two moments is to the nanosecond what the times in files say, as long as nobody sets
 * the clock, and the start of a process, the time of a file less its duration, is the same in all files between two settings. */
#ifndef HP_MOMENT_H
#define HP_MOMENT_H

#include <time.h>

#include "compiler.h"

struct hp_moment {
  int64_t wall_nanos; /* CLOCK_REALTIME */
  int64_t even_nanos; /* only differences mean anything */
};

/* A clock in nanoseconds; of those used here the vdso's, no system call. */
int64_t hp_clock_nanos(clockid_t clock);

/* Now. Three readings of the vdso: no system call. */
struct hp_moment hp_moment_now(void);

/* Nanoseconds from one moment to another; 0 if that is not later. */
static inline int64_t hp_moment_between(struct hp_moment from, struct hp_moment to) {
  return to.even_nanos > from.even_nanos ? to.even_nanos - from.even_nanos : 0;
}

/* What is behind it: how far the wall clock is ahead of the one that is never set, at first and since the last jump. Atomic; all zero:
 * no reading yet. */
struct hp_clock_offset {
  int64_t first_nanos, nanos;
};
/* The wall clock's jumps are taken out of a reading of it. Threads may come here at once. */
int64_t hp_moment_even(struct hp_clock_offset *offset, int64_t wall_nanos, int64_t elapsed_nanos);

#endif
