/* SPDX-License-Identifier: MIT
 * next_malloc.h - the allocator behind us: what each interposed name would have reached without heapprof.
 *
 * Invariants  hp_hot's pointers and hp_next's are never NULL: they start at bootstrap functions that look the real ones up.
 *             Found by RTLD_NEXT only; the interposed names are never called or compared by address (in a non-PIE program
 *             that takes the address of free, &free is the program's own PLT stub everywhere).
 * Callers     interpose*.c; control/lifecycle calls hp_next_resolve_all() at start-up, while the process has one thread:
 *             afterwards no malloc ever calls dlsym, which takes the loader's lock.
 * Memory      before the real ones are known a small static pool answers (glibc < 2.34 allocates inside dlsym); if it was
 *             used, free and realloc recognise its blocks for ever. */
#ifndef HP_NEXT_MALLOC_H
#define HP_NEXT_MALLOC_H

#include <stdlib.h>

#include "compiler.h"

/* The rest of the C entry points (malloc, calloc, realloc, free: hot.h). */
struct hp_next {
  int (*posix_memalign)(void **, size_t, size_t);
  void *(*aligned_alloc)(size_t, size_t);
  void *(*memalign)(size_t, size_t);
  void *(*valloc)(size_t);
  void *(*pvalloc)(size_t);
  size_t (*malloc_usable_size)(void *);
  /* jemalloc's; NULL when the allocator behind has none. Looked for only when somebody defines mallctl: a dlsym that finds
   * nothing costs 5 us, it builds an error message. */
  void *(*mallocx)(size_t, int);
  void *(*rallocx)(void *, size_t, int);
  size_t (*xallocx)(void *, size_t, size_t, int);
  size_t (*sallocx)(const void *, int);
  void (*dallocx)(void *, int);
  void (*sdallocx)(void *, size_t, int);
  size_t (*nallocx)(size_t, int);
  /* Not allocator functions, but interposed too. */
  int (*dlclose)(void *);
  int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
};
extern struct hp_next hp_next;

/* Look everything up. Idempotent. */
void hp_next_resolve_all(void);

/* dlsym(RTLD_NEXT, name) without leaving an error message behind for the program's dlerror(). NULL: not there. */
void *hp_next_find(const char *name);
/* The same in an object that is loaded already, whatever its scope, and that then stays. NULL: object or name not there. */
void *hp_next_find_in(const char *file, const char *name);

#endif
