/* SPDX-License-Identifier: MIT
 * moment.h - a moment by two clocks: what a calendar says of it, and how far it is from another one although the calendar was set
 * in between (a device without a battery starts in 1970). Needs nothing; any thread; async-signal-safe. */
#ifndef HP_MOMENT_H
#define HP_MOMENT_H

#include "compiler.h"

struct hp_moment {
  int64_t wall_nanos;    /* CLOCK_REALTIME */
  int64_t elapsed_nanos; /* CLOCK_BOOTTIME, which goes on while the machine sleeps and is never set */
};

/* Now. The vdso's, twice: no system call. */
struct hp_moment hp_moment_now(void);

/* Nanoseconds from one moment to a later one, never negative. By the wall clock, so that parts add up to the whole and begin to
 * the nanosecond where a file says that the one before ended; by the other if the two differ by more than a second, hence the
 * wall clock was set. */
int64_t hp_moment_between(struct hp_moment from, struct hp_moment to);

#endif
