/* SPDX-License-Identifier: MIT
 * side_thread.c - see side_thread.h.
 */
#include "side_thread.h"

#include <signal.h>
#include <sys/resource.h>

bool hp_side_thread_start(struct hp_side_thread *side, void *(*run)(void *context), void *context) {
  sigset_t all, old;
  struct rlimit space;
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur != RLIM_INFINITY) return false;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  side->is_there = pthread_create(&side->thread, NULL, run, context) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return side->is_there;
}

void hp_side_thread_join(struct hp_side_thread *side) {
  if (side->is_there) pthread_join(side->thread, NULL);
  side->is_there = false;
}
