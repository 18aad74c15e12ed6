/* SPDX-License-Identifier: MIT
 * cli_memory.h - allocation for a command that has no better answer to "out of memory" than to say so and stop.
 *
 * None of these returns null: out of memory is one line on stderr and exit status 1. Not for libheapprof.so.
 */
#ifndef HP_CLI_MEMORY_H
#define HP_CLI_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* malloc, calloc, realloc, strdup. A size of 0 gives a pointer that may be freed. */
void *hp_alloc(size_t size_bytes);
void *hp_alloc_zeroed(size_t count, size_t size_bytes);
void *hp_realloc(void *old, size_t count, size_t size_bytes);
char *hp_strdup(const char *text);

/* Zeroed like hp_alloc_zeroed, but by writing: for arrays that are read and written all over. A fresh page that is read before it is
 * written costs two faults, and beside another thread a flush of its translations too. */
void *hp_alloc_cleared(size_t count, size_t size_bytes);

/* `count` indices, each HP_NONE (UINT32_MAX). */
uint32_t *hp_alloc_none(size_t count);

/* asprintf: a string the caller frees. */
char *hp_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes room for `count` elements of `size_bytes` in *array (any pointer variable by address), at least doubling; *capacity in
 * elements. */
void hp_array_reserve(void *array, size_t *capacity, size_t count, size_t size_bytes);

#endif
