/* SPDX-License-Identifier: MIT
 * fork.h - the whole story of fork.
 *
 * Before      every lock of the profiler is taken, in the lock order, so that the child finds the tables whole. The dump
 *             lock only if it comes within 20 ms: a dump may take long, and its tables are not the profiler's books; the child
 *             then gives up that dump's scratch. Not the deep-stack buffers, which are held for a whole walk: in the child they
 *             are free.
 * Meanwhile   the forking thread may run other fork handlers that allocate: it is marked as the holder of all locks.
 * After       parent: locks are released. Child: the same, then it starts anew: no helper, own pid, own files and numbers,
 *             own random seed, an empty delta, no pending request; its books are a copy, since it really holds that memory.
 *             With HEAPPROF_CHILDREN=0 it goes inert.
 * Handlers    a signal handler that interrupted one of our locks, or a fork, and forks: nothing is taken. The child has the lock
 *             until it returns from the handler; so do both with what the interrupted fork took.
 * Raw forks   clone and _Fork run no handlers: the child is known by the memory that the kernel zeroed (heap.h) when a request
 *             comes, a sample ends, or it starts a thread, and is told then. One that was made while another thread held a
 *             lock of ours may find it taken.
 * Not covered vfork and posix_spawn: they share our memory and touch nothing of ours. */
#ifndef HP_FORK_H
#define HP_FORK_H

#include <stdbool.h>

/* Register the handlers; at start-up, before the program registers any: ours then run last before the fork and first after.
 */
void hp_fork_start(void);

/* Is the calling thread between its fork handlers, in one of the program's, and has the dump lock? Async-signal-safe. */
bool hp_fork_has_dump_lock(void);

/* Tell a child of a raw fork what it is; nothing in any other process. Async-signal-safe. */
void hp_fork_notice(void);

#endif
