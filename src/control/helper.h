/* SPDX-License-Identifier: MIT
 * helper.h - the thread that dumps, from the moment the program has threads of its own: then no thread of the program waits
 * for a dump. A single-threaded program stays one.
 *
 * All signals are blocked in it but HEAPPROF_SIGNAL, so it also serves a program that blocks that one everywhere.
 * It leaves before the main thread leaves by pthread_exit or is cancelled: the C library ends a process with its last
 * thread, and ours must not be the one that keeps it alive. It also leaves when there is no room for a thread of the
 * program's.
 * Threads     each is called on the program's thread that it is about. None is for handlers but is_running and wake.
 * Fork        the child has none, until it creates a thread. */
#ifndef HP_HELPER_H
#define HP_HELPER_H

#include <pthread.h>

#include "compiler.h"

/* Before the program's first thread (preload/thread_hooks.h). Starts the helper if it is wanted and not there; if it cannot
 * be started, dumps go on in the program's threads. */
void hp_helper_start(void);
/* The same if the program has had its first thread: sampling was switched on only now (at rate 0 there is no helper). */
void hp_helper_check(void);
/* A thread leaves by pthread_exit; if it is the main thread, the helper ends and none is started any more. */
void hp_helper_main_leaves(void);
/* Somebody cancels this thread; the same if it is the main one. */
void hp_helper_cancelled(pthread_t thread);
/* The calling thread is the process's first. */
void hp_helper_note_main(void);
/* End the helper for good, and wait for it, and for a dump under way. False: there was none. */
bool hp_helper_end(void);

/* Async-signal-safe. */
bool hp_helper_is_running(void);
/* There is work: false if there is no helper. Async-signal-safe. */
bool hp_helper_wake(void);

/* In a forked child, before anything else of it runs. */
void hp_helper_after_fork(void);

#endif
