/* SPDX-License-Identifier: MIT
 * next_malloc.c - see next_malloc.h. */
#include "next_malloc.h"

#include <errno.h>
#include <string.h>

#include "hot.h"
#include "interpose_cxx.h"
#include "libc_names.h"
#include "loader_calls.h"
#include "sys.h"

/* ---- the pool: answers while dlsym runs for the first time ---- */
enum { POOL_BYTES = 32 * 1024, POOL_HEADER = 16 };

static char pool[POOL_BYTES] __attribute__((aligned(16)));
static size_t pool_used;
static volatile bool is_resolving; /* volatile: glibc declares dlsym a leaf, but it calls back */

static void *pool_alloc(size_t size) {
  if (size > POOL_BYTES) return NULL;
  size_t need = POOL_HEADER + ((size + 15) & ~(size_t)15);
  size_t at = __atomic_fetch_add(&pool_used, need, __ATOMIC_RELAXED);
  if (at + need > POOL_BYTES) return NULL;
  memcpy(pool + at, &size, sizeof size);
  return pool + at + POOL_HEADER; /* zero: never handed out before */
}

static bool is_pool_block(const void *ptr) { return (uintptr_t)ptr - (uintptr_t)pool < POOL_BYTES; }

static void (*behind_free)(void *);
static void *(*behind_realloc)(void *, size_t);

static void free_knowing_pool(void *ptr) {
  if (!is_pool_block(ptr)) behind_free(ptr);
}

static void *realloc_knowing_pool(void *ptr, size_t size) {
  if (!is_pool_block(ptr)) return behind_realloc(ptr, size);
  size_t old;
  memcpy(&old, (char *)ptr - POOL_HEADER, sizeof old);
  void *fresh = hp_hot.real_malloc(size);
  if (fresh != NULL) memcpy(fresh, ptr, old < size ? old : size);
  return fresh;
}

/* ---- looking up ---- */

/* Asked again if it finds nothing: it may have been short of memory for a moment, and without these names nothing works. */
static void *find_raw(const char *name) {
  void *found = hp_loader.dlsym(RTLD_NEXT, name);
  return HP_LIKELY(found != NULL) ? found : hp_loader.dlsym(RTLD_NEXT, name);
}

void *hp_next_find(const char *name) {
  void *found = find_raw(name);
  if (found == NULL) hp_loader.dlerror();
  return found;
}

void *hp_next_find_in(const char *file, const char *name) {
  void *object = hp_loader.dlopen(file, RTLD_LAZY | RTLD_NOLOAD); /* never closed: it must not go while we point into it */
  void *found = object == NULL ? NULL : hp_loader.dlsym(object, name);
  if (found == NULL) hp_loader.dlerror();
  return found;
}

/* Is there an allocator between us and libc that dlsym passes over? glibc's libc_malloc_debug.so (MALLOC_CHECK_, mtrace) has its
 * names in libc's old versions only: a program, which asks for these, gets them; dlsym takes names without a version or the
 * newest. */
static bool is_hidden_behind_us;

/* Without an allocation, which dlopen might make. */
static bool is_in_libc(const void *function) {
  Dl_info info;
  if (!hp_loader.dladdr(function, &info) || info.dli_fname == NULL) return false;
  const char *slash = strrchr(info.dli_fname, '/');
  return strcmp(slash == NULL ? info.dli_fname : slash + 1, "libc.so.6") == 0;
}

static bool is_hidden(void) {
  if (hp_loader.dlvsym == NULL) return false; /* musl */
  void *found = find_raw("malloc"), *old = hp_loader.dlvsym(RTLD_NEXT, "malloc", HP_OLD_VERSION("2.2.5"));
  if (HP_UNLIKELY(old == NULL)) hp_loader.dlerror();
  return HP_UNLIKELY(old != NULL && old != found) && is_in_libc(found);
}

/* What a program that asks for `name` in `version` would have reached without us. NULL: not there, and dlerror() says so. */
static void *find_behind(const char *name, const char *version) {
  void *found = HP_UNLIKELY(is_hidden_behind_us) ? hp_loader.dlvsym(RTLD_NEXT, name, version) : NULL;
  return found != NULL ? found : find_raw(name);
}

static void resolve_core(void) {
  if (is_resolving) return;
  is_resolving = true;
  hp_loader_calls_find();
  is_hidden_behind_us = is_hidden();
  void *real_malloc = find_behind("malloc", HP_OLD_VERSION("2.2.5"));
  void *real_free = find_behind("free", HP_OLD_VERSION("2.2.5"));
  void *real_calloc = find_behind("calloc", HP_OLD_VERSION("2.2.5"));
  void *real_realloc = find_behind("realloc", HP_OLD_VERSION("2.2.5"));
  if (real_malloc == NULL || real_free == NULL || real_calloc == NULL || real_realloc == NULL) __builtin_trap();
  behind_free = (void (*)(void *))real_free;
  behind_realloc = (void *(*)(void *, size_t))real_realloc;
  bool used = pool_used != 0;
  hp_store_release(&hp_hot.real_free, used ? free_knowing_pool : behind_free);
  hp_store_release(&hp_hot.real_realloc, used ? realloc_knowing_pool : behind_realloc);
  hp_store_release(&hp_hot.real_calloc, (void *(*)(size_t, size_t))real_calloc);
  hp_store_release(&hp_hot.real_malloc, (void *(*)(size_t))real_malloc);
  hp_store_release(&hp_hot.malloc, (void *(*)(size_t))real_malloc);
  is_resolving = false;
}

/* ---- the first call of each core name lands here ---- */
static void *boot_malloc(size_t size) {
  resolve_core();
  return hp_hot.real_malloc != boot_malloc ? hp_hot.real_malloc(size) : pool_alloc(size);
}

static void *boot_calloc(size_t n, size_t size) {
  resolve_core();
  if (hp_hot.real_calloc != boot_calloc) return hp_hot.real_calloc(n, size);
  size_t bytes;
  return __builtin_mul_overflow(n, size, &bytes) ? NULL : pool_alloc(bytes);
}

static void *boot_realloc(void *ptr, size_t size) {
  resolve_core();
  if (hp_hot.real_realloc != boot_realloc) return hp_hot.real_realloc(ptr, size);
  if (ptr == NULL) return pool_alloc(size);
  size_t old;
  memcpy(&old, (char *)ptr - POOL_HEADER, sizeof old);
  void *fresh = pool_alloc(size);
  if (fresh != NULL) memcpy(fresh, ptr, old < size ? old : size);
  return fresh;
}

static void boot_free(void *ptr) {
  if (ptr == NULL || is_pool_block(ptr)) return;
  resolve_core();
  if (hp_hot.real_free != boot_free) hp_hot.real_free(ptr);
}

enum { EMPTY_BITS = 6 };
static const uint8_t empty_filter[(1 << EMPTY_BITS) + HP_FILTER_SLACK] __attribute__((aligned(64)));

struct hp_hot hp_hot = {
    .malloc = boot_malloc,
    .real_malloc = boot_malloc,
    .real_free = boot_free,
    .real_calloc = boot_calloc,
    .real_realloc = boot_realloc,
    .filter = (uintptr_t)empty_filter + 64 - EMPTY_BITS, /* hp_filter_place(), as a constant */
    .rate_epoch = 1,
};

/* ---- the others: looked up at start-up, or at a call that comes even before ---- */
#define BOOT(result, name, parameters, arguments) \
  static result boot_##name parameters {          \
    hp_next_resolve_all();                        \
    return hp_next.name arguments;                \
  }
BOOT(int, posix_memalign, (void **out, size_t alignment, size_t size), (out, alignment, size))
BOOT(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
BOOT(void *, memalign, (size_t alignment, size_t size), (alignment, size))
BOOT(void *, valloc, (size_t size), (size))
BOOT(void *, pvalloc, (size_t size), (size))
BOOT(size_t, malloc_usable_size, (void *ptr), (ptr))
BOOT(int, dlclose, (void *handle), (handle))

/* The allocator behind us may call it while it is being looked up and starts. */
static int boot_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  long result = hp_syscall6(SYS_prctl, option, (long)a, (long)b, (long)c, (long)d, 0);
  if (result >= 0) return (int)result;
  errno = (int)-result;
  return -1;
}

struct hp_next hp_next = {
    .posix_memalign = boot_posix_memalign,
    .aligned_alloc = boot_aligned_alloc,
    .memalign = boot_memalign,
    .valloc = boot_valloc,
    .pvalloc = boot_pvalloc,
    .malloc_usable_size = boot_malloc_usable_size,
    .dlclose = boot_dlclose,
    .prctl = boot_prctl,
};

/* An allocator without this name (musl has no valloc): the answer of one that is out of memory. */
static int absent_posix_memalign(void **out, size_t alignment, size_t size) {
  (void)out;
  (void)alignment;
  (void)size;
  return ENOMEM;
}
static void *absent_aligned(size_t alignment, size_t size) {
  (void)alignment;
  (void)size;
  errno = ENOMEM;
  return NULL;
}
static void *absent_valloc(size_t size) { return absent_aligned(1, size); }
static size_t absent_usable(void *ptr) {
  (void)ptr;
  return 0;
}

/* jemalloc's mark; we define no such name, so the loader binds it to whoever does. */
extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

#define RESOLVE_OLD(name, version, fallback)                    \
  do {                                                          \
    void *found_ = find_behind(#name, HP_OLD_VERSION(version)); \
    if (found_ == NULL) hp_loader.dlerror();                    \
    hp_next.name = (__typeof__(hp_next.name))found_;            \
    if (found_ == NULL) hp_next.name = (fallback);              \
  } while (0)
#define RESOLVE(name, fallback) RESOLVE_OLD(name, "2.2.5", fallback)

void hp_next_resolve_all(void) {
  static bool is_done;
  if (is_done) return;
  resolve_core();
  RESOLVE(posix_memalign, absent_posix_memalign);
  RESOLVE_OLD(aligned_alloc, "2.16", absent_aligned);
  RESOLVE(memalign, absent_aligned);
  RESOLVE(valloc, absent_valloc);
  RESOLVE(pvalloc, absent_valloc);
  RESOLVE(malloc_usable_size, absent_usable);
  RESOLVE(dlclose, (__typeof__(hp_next.dlclose))hp_next_find_in("libdl.so.2", "dlclose")); /* before glibc 2.34 */
  RESOLVE(prctl, NULL);                                                                    /* every libc has it */
  if (mallctl != NULL) {
    RESOLVE(mallocx, NULL);
    RESOLVE(rallocx, NULL);
    RESOLVE(xallocx, NULL);
    RESOLVE(sallocx, NULL);
    RESOLVE(dallocx, NULL);
    RESOLVE(sdallocx, NULL);
    RESOLVE(nallocx, NULL);
  }
  hp_cxx_find_runtime();
  is_done = true;
}
