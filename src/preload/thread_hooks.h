/* SPDX-License-Identifier: MIT
 * thread_hooks.h - what control sets to hear of threads. Called on the program's thread, outside the profiler's section. */
#ifndef HP_THREAD_HOOKS_H
#define HP_THREAD_HOOKS_H

#include <pthread.h>

#include "compiler.h"

/* Before any thread the program creates (pthread_create, thrd_create). NULL: nobody cares. */
extern void (*hp_hook_before_thread)(void);
/* A thread is about to leave by pthread_exit or thrd_exit. */
extern void (*hp_hook_main_leaves)(void);
/* A thread is about to be cancelled. */
extern void (*hp_hook_cancel)(pthread_t thread);
/* There was no room for another thread of the program: true if now there is. */
extern bool (*hp_hook_no_room)(void);

/* The real ones, which a program without threads may lack (glibc < 2.34 has them in libpthread): valid once pthread_create or
 * thrd_create of ours has been called; pthread_create answers EAGAIN when there is none. */
struct hp_next_thread {
  int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  int (*pthread_join)(pthread_t, void **);
  int (*pthread_attr_setstacksize)(pthread_attr_t *, size_t);
};
extern struct hp_next_thread hp_next_thread;

#endif
