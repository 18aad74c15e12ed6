/* SPDX-License-Identifier: MIT
 * marking_allocator.c - an allocator that knows its own blocks: each carries a mark in front, and one without it, or given back by
 * another form than it came from, ends the program. It has neither reallocarray nor the names C23 added.
 *   (plain)          complete in itself, over __libc_malloc: preloaded before the library, or linked into the program
 *   -DIS_A_WRAPPER   passes each call on to the next allocator: preloaded before the library
 *   -DHAS_OPERATORS  with operators new and delete of its own: preloaded behind the library
 *   -DIS_HIDDEN      its names have libc's old versions and are not the newest (hidden_names.map), as those of glibc's
 *                    libc_malloc_debug.so: preloaded behind the library */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

void *__libc_malloc(size_t size);
void __libc_free(void *ptr);

/* Before the block, which is aligned by it. */
enum { HEAD_BYTES = 32, FROM_MALLOC = 'm', FROM_NEW = 'n', FROM_NEW_ARRAY = 'a', FROM_NEW_ALIGNED = 'l' };
struct head {
  uint64_t mark;
  uint64_t form;
  size_t size;
  void *start; /* what the allocator beneath gave */
};
static const uint64_t MARK = 0x6b6172616d6b7261;

#ifdef IS_A_WRAPPER
static void *beneath_malloc(size_t size) {
  static void *(*next)(size_t);
  if (next == NULL) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
  return next(size);
}
static void beneath_free(void *ptr) {
  static void (*next)(void *);
  if (next == NULL) next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
  next(ptr);
}
#else
static void *beneath_malloc(size_t size) { return __libc_malloc(size); }
static void beneath_free(void *ptr) { __libc_free(ptr); }
#endif

static void *make(size_t size, size_t alignment, uint64_t form) {
  if (size > SIZE_MAX / 4) return NULL;
  char *start = beneath_malloc(size + alignment + HEAD_BYTES);
  if (start == NULL) return NULL;
  char *block = (char *)(((uintptr_t)start + HEAD_BYTES + alignment - 1) & ~(alignment - 1));
  struct head head = {MARK, form, size, start};
  memcpy(block - HEAD_BYTES, &head, sizeof head);
  return block;
}

static struct head look(void *block, uint64_t form) {
  struct head head;
  memcpy(&head, (char *)block - HEAD_BYTES, sizeof head);
  if (head.mark != MARK || head.form != form) abort();
  return head;
}

static void give_back(void *block, uint64_t form) {
  if (block == NULL) return;
  struct head head = look(block, form);
  memset((char *)block - HEAD_BYTES, 0, sizeof head);
  beneath_free(head.start);
}

void *malloc(size_t size) { return make(size, 16, FROM_MALLOC); }
void free(void *ptr) { give_back(ptr, FROM_MALLOC); }
void *calloc(size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
  void *block = malloc(bytes);
  return block == NULL ? NULL : memset(block, 0, bytes);
}
void *realloc(void *ptr, size_t size) {
  if (ptr == NULL) return malloc(size);
  size_t old = look(ptr, FROM_MALLOC).size;
  void *fresh = malloc(size);
  if (fresh == NULL) return NULL;
  memcpy(fresh, ptr, old < size ? old : size);
  free(ptr);
  return fresh;
}
void *aligned_alloc(size_t alignment, size_t size) { return make(size, alignment < 16 ? 16 : alignment, FROM_MALLOC); }
void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
  *out = aligned_alloc(alignment, size);
  return 0;
}

#ifdef IS_HIDDEN
#include "../support/dlsym_version.h"
#if defined(__aarch64__)
#define ALIGNED_ALLOC_VERSION DLSYM_VERSION
#else
#define ALIGNED_ALLOC_VERSION "GLIBC_2.16"
#endif
#define HIDE(name, version) __asm__(".symver " #name "," #name "@" version)
HIDE(malloc, DLSYM_VERSION);
HIDE(free, DLSYM_VERSION);
HIDE(calloc, DLSYM_VERSION);
HIDE(realloc, DLSYM_VERSION);
HIDE(memalign, DLSYM_VERSION);
HIDE(posix_memalign, DLSYM_VERSION);
HIDE(aligned_alloc, ALIGNED_ALLOC_VERSION);
#endif

#ifdef HAS_OPERATORS
static void *make_or_die(size_t size, size_t alignment, uint64_t form) {
  void *block = make(size, alignment, form);
  if (block == NULL) abort();
  return block;
}
void *_Znwm(size_t size) { return make_or_die(size, 16, FROM_NEW); }
void *_Znam(size_t size) { return make_or_die(size, 16, FROM_NEW_ARRAY); }
void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag) { return (void)tag, make(size, 16, FROM_NEW); }
void *_ZnamRKSt9nothrow_t(size_t size, const void *tag) { return (void)tag, make(size, 16, FROM_NEW_ARRAY); }
void *_ZnwmSt11align_val_t(size_t size, size_t alignment) { return make_or_die(size, alignment, FROM_NEW_ALIGNED); }
void _ZdlPv(void *ptr) { give_back(ptr, FROM_NEW); }
void _ZdlPvm(void *ptr, size_t size) { (void)size, give_back(ptr, FROM_NEW); }
void _ZdaPv(void *ptr) {
  /* As tcmalloc's debugging library does: a delete that calls new. */
  static __thread int is_inside;
  if (is_inside++ == 0) _ZdaPv(_Znam(1));
  is_inside--;
  give_back(ptr, FROM_NEW_ARRAY);
}
void _ZdlPvSt11align_val_t(void *ptr, size_t alignment) { (void)alignment, give_back(ptr, FROM_NEW_ALIGNED); }
void _ZdlPvmSt11align_val_t(void *ptr, size_t size, size_t alignment) {
  (void)size, (void)alignment, give_back(ptr, FROM_NEW_ALIGNED);
}
#endif
