/* SPDX-License-Identifier: MIT
 * object_list.h - the loaded objects as dl_iterate_phdr tells them, for C libraries without _dl_find_object (glibc < 2.35).
 *
 * dl_iterate_phdr takes the loader's lock, so the list is made where the program itself is in the loader's hands: at start,
 * after dlopen, after dlclose; between the two ends of a dlclose it is empty. An object that came by another way is not in
 * it, and stacks end there. Invariants  readers take no lock: a sequence number is odd while the list changes, and a reader
 * that saw a change finds nothing. Memory      private heap; a list that grew leaves the old one behind (they double). */
#ifndef HP_OBJECT_LIST_H
#define HP_OBJECT_LIST_H

#include "object_find.h"

/* The object that holds the address, completely described. Any thread, async-signal-safe. */
bool hp_object_list_find(uintptr_t address, struct hp_object *out);

/* Take the list anew. Not from inside malloc or a handler: waits for the loader. */
void hp_object_list_refresh(void);
/* Around a dlclose: nothing is found in between, the second one refreshes. Nested. */
void hp_object_list_suspend(void);
void hp_object_list_resume(void);

#endif
