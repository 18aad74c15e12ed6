/* SPDX-License-Identifier: MIT
 * null_interposer.c - libnull.so: a preloaded library that only forwards each call. It is the floor: nothing that interposes
 * by symbol can cost less.
 * Each pointer begins at a function that looks up the next definition, stores it and calls it, so that the way of a call is
 * one load and one jump. Names are looked up when first called: a name that no library behind us has is never called, and
 * looking it up would fail, which allocates.
 * dlsym does not allocate when it succeeds (glibc), so nothing needs to answer before the first pointer is known. But it
 * frees the text of an earlier failure, and would come back here for ever: a block freed while `free` is looked up is left
 * alone.
 */
#include <dlfcn.h>
#include <stddef.h>

/* type name(parameters), called with `arguments`, exported under the symbol `symbol`. */
#define FORWARD(type, name, symbol, parameters, arguments)             \
  type null_##name parameters __asm__(symbol);                         \
  static type find_##name parameters;                                  \
  static type(*next_##name) parameters = find_##name;                  \
  static __attribute__((noinline, cold)) type find_##name parameters { \
    next_##name = (type(*) parameters)dlsym(RTLD_NEXT, symbol);        \
    return next_##name arguments;                                      \
  }                                                                    \
  type null_##name parameters { return next_##name arguments; }

FORWARD(void *, malloc, "malloc", (size_t size), (size))
FORWARD(void *, calloc, "calloc", (size_t count, size_t size), (count, size))
FORWARD(void *, realloc, "realloc", (void *block, size_t size), (block, size))
FORWARD(void *, reallocarray, "reallocarray", (void *block, size_t count, size_t size), (block, count, size))
FORWARD(int, posix_memalign, "posix_memalign", (void **out, size_t alignment, size_t size), (out, alignment, size))
FORWARD(void *, aligned_alloc, "aligned_alloc", (size_t alignment, size_t size), (alignment, size))
FORWARD(void *, memalign, "memalign", (size_t alignment, size_t size), (alignment, size))
FORWARD(void *, valloc, "valloc", (size_t size), (size))
FORWARD(void *, pvalloc, "pvalloc", (size_t size), (size))

void null_free(void *block) __asm__("free");
static void find_free(void *block);
static void (*next_free)(void *block) = find_free;

static __attribute__((noinline, cold)) void find_free(void *block) {
  static _Thread_local volatile char is_looking;
  if (is_looking) return;
  is_looking = 1;
  next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
  is_looking = 0;
  next_free(block);
}

void null_free(void *block) { next_free(block); }

/* operator new and delete: plain, array; nothrow; aligned; sized. */
FORWARD(void *, new, "_Znwm", (size_t size), (size))
FORWARD(void *, new_array, "_Znam", (size_t size), (size))
FORWARD(void *, new_nothrow, "_ZnwmRKSt9nothrow_t", (size_t size, const void *tag), (size, tag))
FORWARD(void *, new_array_nothrow, "_ZnamRKSt9nothrow_t", (size_t size, const void *tag), (size, tag))
FORWARD(void *, new_aligned, "_ZnwmSt11align_val_t", (size_t size, size_t alignment), (size, alignment))
FORWARD(void *, new_array_aligned, "_ZnamSt11align_val_t", (size_t size, size_t alignment), (size, alignment))
FORWARD(void *, new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", (size_t size, size_t alignment, const void *tag),
        (size, alignment, tag))
FORWARD(void *, new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t",
        (size_t size, size_t alignment, const void *tag), (size, alignment, tag))
FORWARD(void, delete, "_ZdlPv", (void *block), (block))
FORWARD(void, delete_array, "_ZdaPv", (void *block), (block))
FORWARD(void, delete_sized, "_ZdlPvm", (void *block, size_t size), (block, size))
FORWARD(void, delete_array_sized, "_ZdaPvm", (void *block, size_t size), (block, size))
FORWARD(void, delete_nothrow, "_ZdlPvRKSt9nothrow_t", (void *block, const void *tag), (block, tag))
FORWARD(void, delete_array_nothrow, "_ZdaPvRKSt9nothrow_t", (void *block, const void *tag), (block, tag))
FORWARD(void, delete_aligned, "_ZdlPvSt11align_val_t", (void *block, size_t alignment), (block, alignment))
FORWARD(void, delete_array_aligned, "_ZdaPvSt11align_val_t", (void *block, size_t alignment), (block, alignment))
FORWARD(void, delete_sized_aligned, "_ZdlPvmSt11align_val_t", (void *block, size_t size, size_t alignment),
        (block, size, alignment))
FORWARD(void, delete_array_sized_aligned, "_ZdaPvmSt11align_val_t", (void *block, size_t size, size_t alignment),
        (block, size, alignment))
