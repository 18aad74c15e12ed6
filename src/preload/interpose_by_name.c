/* SPDX-License-Identifier: MIT
 * interpose_by_name.c - the exported names that are nothing but a call of another one of malloc's. In glibc too reallocarray ends in
 * whatever realloc the process found first, and that need not be ours: an allocator that is linked into the program or preloaded
 * before us has blocks that the one behind us does not know, and so has a wrapper that puts a header before each block. So they
 * are passed on by name, from a file that does not define it (where one does, the compiler calls it straight). If the name is
 * ours the call is counted there, and our own frame is stepped over. (The exported ones have no header: nobody
 * calls them.) */
#include "interpose_by_name.h"

#include <errno.h>
#include <stdlib.h>

#include "compiler.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the prototypes are libc's, and some are newer than it */

HP_EXPORT HP_HOT_CODE void *reallocarray(void *ptr, size_t n, size_t size) {
  size_t bytes;
  if (HP_UNLIKELY(__builtin_mul_overflow(n, size, &bytes))) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(ptr, bytes);
}

/* C23 defines both as free of a block whose size is known; whether the allocator behind has them makes no difference. */
HP_EXPORT void free_sized(void *ptr, size_t size) {
  (void)size;
  free(ptr);
}

HP_EXPORT void free_aligned_sized(void *ptr, size_t alignment, size_t size) {
  (void)alignment;
  (void)size;
  free(ptr);
}

/* ---- interpose_by_name.h ---- */
void *_Znwm(size_t size);
void _ZdlPv(void *ptr);
void _ZdaPv(void *ptr);
void _ZdlPvSt11align_val_t(void *ptr, size_t alignment);
void _ZdaPvSt11align_val_t(void *ptr, size_t alignment);

void *hp_by_name_new(size_t size) { return _Znwm(size); }
void hp_by_name_delete(void *ptr) { _ZdlPv(ptr); }
void hp_by_name_delete_array(void *ptr) { _ZdaPv(ptr); }
void hp_by_name_delete_aligned(void *ptr, size_t alignment) { _ZdlPvSt11align_val_t(ptr, alignment); }
void hp_by_name_delete_array_aligned(void *ptr, size_t alignment) { _ZdaPvSt11align_val_t(ptr, alignment); }
