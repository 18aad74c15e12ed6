/* SPDX-License-Identifier: MIT
 * jit_names.h - names of code that a just-in-time compiler made: /tmp/perf-PID.map, and jitdump files.
 */
#ifndef HP_JIT_NAMES_H
#define HP_JIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hp_jit_names;

/* An empty collection. */
struct hp_jit_names *hp_jit_names_new(void);
void hp_jit_names_free(struct hp_jit_names *names);

/* Adds the entries of a perf map ("START SIZE NAME" in hexadecimal, a line each) or of a jitdump file (told apart by its magic).
 * Taken only if it is a regular file of ours or of root's, since anyone can put a file into /tmp. False: not taken, *why says why. */
bool hp_jit_names_add(struct hp_jit_names *names, const char *path, const char **why);

/* The name of the code at an address, or null. Of entries that overlap the one added last wins: the newest code. */
const char *hp_jit_names_find(struct hp_jit_names *names, uint64_t address);

#endif
