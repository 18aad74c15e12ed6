/* SPDX-License-Identifier: MIT
 * side_thread.h - a thread for work beside the caller's, which waits for it before it returns.
 */
#ifndef HP_SIDE_THREAD_H
#define HP_SIDE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct hp_side_thread {
  pthread_t thread;
  bool is_there;
};

/* Starts `run(context)` in a thread without signals: those are for the threads that expect them. False: there is none to be had, or
 * address space is limited (ulimit -v), of which a thread's stack and its part of malloc take a hundred MiB. */
bool hp_side_thread_start(struct hp_side_thread *side, void *(*run)(void *context), void *context);

/* Waits for its end; of one that was never started nothing. */
void hp_side_thread_join(struct hp_side_thread *side);

#endif
