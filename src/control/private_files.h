/* SPDX-License-Identifier: MIT
 * private_files.h - a table of file descriptors for the helper thread alone. A program may close any number, open others in
 * its place or dup over it at any time: while the helper shares its table, a profile may be written into the program's file.
 *
 * Threads     on and borrow: any; take: the helper.
 * Signals     async-signal-safe. */
#ifndef HP_PRIVATE_FILES_H
#define HP_PRIVATE_FILES_H

#include "compiler.h"

/* Give the calling thread an empty table of its own. Nothing happens on a kernel that cannot (before 5.9), without /proc,
 * and under a seccomp filter, which may kill for a call it does not know. Call it when files are about to be opened anyway.
 */
void hp_private_files_take(void);

/* Has this thread got one? */
bool hp_private_files_on(void);

/* A duplicate of a descriptor of the program's, in this thread's own table; the caller closes it. Negative errno: none. */
int hp_private_files_borrow(int fd);

#endif
