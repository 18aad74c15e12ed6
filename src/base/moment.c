/* SPDX-License-Identifier: MIT
 * moment.c - see moment.h. */
#include "moment.h"

#define JUMP_NANOS ((int64_t)1000000000) /* a leap second is none */
#define APART_NANOS ((int64_t)10000000)  /* a thread that lost its CPU between two readings tells nothing of the clocks */
enum { TRIES = 3 };

static struct hp_clock_offset offset;

int64_t hp_clock_nanos(clockid_t clock) {
  struct timespec now = {0};
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t hp_moment_even(struct hp_clock_offset *o, int64_t wall_nanos, int64_t elapsed_nanos) {
  int64_t seen = wall_nanos - elapsed_nanos, known = hp_load_relaxed(&o->nanos), first = 0;
  if (seen == 0) seen = 1; /* 0: none yet */
  bool is_jump = seen - known > JUMP_NANOS || known - seen > JUMP_NANOS;
  if ((known == 0 || is_jump) &&
      __atomic_compare_exchange_n(&o->nanos, &known, seen, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    known = seen;
  if (__atomic_compare_exchange_n(&o->first_nanos, &first, known, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) first = known;
  return wall_nanos - (known - first);
}

struct hp_moment hp_moment_now(void) {
  int64_t wall, before, elapsed = hp_clock_nanos(CLOCK_BOOTTIME);
  int tries = 0;
  do {
    before = elapsed;
    wall = hp_clock_nanos(CLOCK_REALTIME);
    elapsed = hp_clock_nanos(CLOCK_BOOTTIME);
  } while (elapsed - before > APART_NANOS && ++tries < TRIES);
  return (struct hp_moment){.wall_nanos = wall, .even_nanos = hp_moment_even(&offset, wall, elapsed)};
}
