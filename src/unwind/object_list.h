/* SPDX-License-Identifier: MIT
 * object_list.h - the loaded objects, for C libraries without _dl_find_object (glibc < 2.35).
 *
 * dl_iterate_phdr takes the loader's lock, which another thread may hold while it waits for us. So the list is read as a
 * debugger reads it, from the loader's own chain (r_debug), without a lock, at the first look and whenever the chain has grown.
 * Not while the loader is changing it: a stack that passes through an object that comes just now ends there, once.
 * Invariants  every word of the chain is asked of the kernel before it is read, and believed only if it points back to where
 *             we came from: a thread may be unloading it. Between the two ends of a dlclose nothing is found; after it the list
 *             is made anew. Readers take no lock: a sequence number is odd while the list changes, and a reader that saw a
 *             change finds nothing.
 * Memory      private heap; a list that grew leaves the old one behind (they double). */
#ifndef HP_OBJECT_LIST_H
#define HP_OBJECT_LIST_H

#include "object_find.h"

/* The object that holds the address, completely described. Any thread, async-signal-safe but for the private heap. */
bool hp_object_list_find(uintptr_t address, struct hp_object *out);

/* Around a dlclose: nothing is found in between. Nested; resume returns whether it was the last. It waits for the loader: not
 * inside malloc, not in a handler. */
void hp_object_list_suspend(void);
bool hp_object_list_resume(void);

/* In a forked child: of the suspensions only `own` have somebody to end them. Waits for no lock. */
void hp_object_list_after_fork(uint32_t own);

/* Around fork (control/fork.c): whoever makes the list. */
void hp_object_list_lock(void);
void hp_object_list_unlock(void);

#endif
