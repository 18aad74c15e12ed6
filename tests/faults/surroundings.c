/* SPDX-License-Identifier: MIT
 * surroundings.c - preloaded behind the library: the loader and the runtime as they may be elsewhere.
 *
 *   LD_PRELOAD="libheapprof.so libsurroundings.so"
 *   ABSENT=NAME,NAME...   dlsym does not find these names behind the library
 *   LOOKUP_ALLOCATES=1    the look-up of malloc calls the allocator, as dlsym did before glibc 2.34; surroundings_check() is the program's
 *                         look at these blocks afterwards
 *   HELPER_IS_SLOW=1      the thread that the library makes for itself is made when surroundings_go_on is no longer 0 and the main thread
 *                         has left
 *   FIGURES_HANG=1        mallinfo2 never returns
 *   FIRST=NAME            that function is the first of the allocator's to be called, before the library's constructor
 *
 * Each look-up is a jump to the real one, which sees who asks by the return address: hence compiled with sibling calls. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/dlsym_version.h"

typedef void *look_up(void *, const char *);

static look_up *real;
static char *early[3], *filler[64];

static void want(bool condition) {
  if (!condition) abort();
}

static bool is_all(const char *block, size_t n, char value) {
  for (size_t i = 0; i < n; i++) {
    if (block[i] != value) return false;
  }
  return true;
}

/* Nothing but a small pool can answer now. */
static void allocate_in_lookup(void) {
  enum { TOO_MUCH = 40 * 1024 };
  void *volatile none = malloc(TOO_MUCH);
  want(none == NULL);
  volatile size_t half = SIZE_MAX / 2;
  none = calloc(half, 3);
  want(none == NULL);
  early[0] = malloc(100);
  early[1] = calloc(4, 25);
  early[2] = realloc(NULL, 50);
  want(early[0] != NULL && early[1] != NULL && early[2] != NULL && is_all(early[1], 100, 0));
  memset(early[0], 'a', 100);
  memset(early[2], 'c', 50);
  early[2] = realloc(early[2], 200);
  want(early[2] != NULL && is_all(early[2], 50, 'c'));
  free(malloc(10));
  free(NULL);
  size_t n = 0;
  while (n < sizeof filler / sizeof filler[0] && (filler[n] = malloc(1000)) != NULL) memset(filler[n++], 'f', 1000);
  want(n > 16 && n < 40);
  none = realloc(early[0], 2000);
  want(none == NULL && is_all(early[0], 100, 'a'));
}

/* The blocks of then, in the hands of the real allocator's functions. */
void surroundings_check(void);
void surroundings_check(void) {
  want(early[0] != NULL);
  want(is_all(early[0], 100, 'a') && is_all(early[1], 100, 0) && is_all(early[2], 50, 'c'));
  char *grown = realloc(early[0], 5000);
  want(grown != NULL && is_all(grown, 100, 'a'));
  grown = realloc(grown, 10000);
  want(grown != NULL && is_all(grown, 100, 'a'));
  free(grown);
  char *shrunk = realloc(early[2], 20);
  want(shrunk != NULL && is_all(shrunk, 20, 'c'));
  free(shrunk);
  free(early[1]);
  for (size_t i = 0; i < sizeof filler / sizeof filler[0] && filler[i] != NULL; i++) {
    want(is_all(filler[i], 1000, 'f'));
    free(filler[i]);
  }
}

static bool is_absent(const char *name) {
  static const char *absent;
  size_t n = strlen(name);
  if (absent == NULL) absent = getenv("ABSENT");
  if (absent == NULL) absent = "";
  for (const char *at = absent; (at = strstr(at, name)) != NULL; at += n) {
    if ((at == absent || at[-1] == ',') && (at[n] == ',' || at[n] == 0)) return true;
  }
  return false;
}

static void start(void) {
  real = (look_up *)dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
  if (real == NULL) abort();
}

void *dlsym(void *handle, const char *name) {
  if (real == NULL) start();
  if (early[0] == NULL && strcmp(name, "malloc") == 0 && getenv("LOOKUP_ALLOCATES") != NULL) allocate_in_lookup();
  if (handle == RTLD_NEXT && is_absent(name)) return NULL;
  return real(handle, name);
}

/* The library's own thread is known by its stack. */
extern int surroundings_is_waiting, surroundings_go_on; /* atomic */
int surroundings_is_waiting, surroundings_go_on;
static pthread_t main_thread;
__attribute__((constructor)) static void note_main(void) { main_thread = pthread_self(); }

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  size_t stack = 0;
  if (real == NULL) start();
  if (next == NULL) next = (__typeof__(next))real(RTLD_NEXT, "pthread_create");
  if (getenv("HELPER_IS_SLOW") != NULL && attributes != NULL && pthread_attr_getstacksize(attributes, &stack) == 0 &&
      stack == 128 * 1024) {
    __atomic_store_n(&surroundings_is_waiting, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&surroundings_go_on, __ATOMIC_ACQUIRE) == 0) usleep(1000);
    want(pthread_join(main_thread, NULL) == 0);
  }
  return next(thread, attributes, run, argument);
}

struct mallinfo2 mallinfo2(void) {
  static struct mallinfo2 (*next)(void);
  while (getenv("FIGURES_HANG") != NULL) pause();
  if (real == NULL) start();
  if (next == NULL) next = (struct mallinfo2(*)(void))real(RTLD_NEXT, "mallinfo2");
  return next();
}

/* glibc's own, under a name that nobody interposes: a block whose free may be the first call of all. */
extern void *__libc_malloc(size_t);

static void use_and_free(void *block, size_t n, uintptr_t alignment) {
  want(block != NULL && (uintptr_t)block % alignment == 0);
  memset(block, 1, n);
  free(block);
}

__attribute__((constructor)) static void call_first(void) {
  const char *first = getenv("FIRST");
  void *block = NULL;
  if (first == NULL) return;
  if (strcmp(first, "calloc") == 0) {
    block = calloc(3, 50);
    want(block != NULL && is_all(block, 150, 0));
    use_and_free(block, 150, 16);
  } else if (strcmp(first, "realloc") == 0) {
    use_and_free(realloc(NULL, 100), 100, 16);
  } else if (strcmp(first, "free") == 0) {
    use_and_free(__libc_malloc(100), 100, 16);
  } else if (strcmp(first, "posix_memalign") == 0) {
    want(posix_memalign(&block, 256, 100) == 0);
    use_and_free(block, 100, 256);
  } else if (strcmp(first, "aligned_alloc") == 0) {
    use_and_free(aligned_alloc(128, 256), 256, 128);
  } else if (strcmp(first, "memalign") == 0) {
    use_and_free(memalign(512, 100), 100, 512);
  } else if (strcmp(first, "valloc") == 0) {
    use_and_free(valloc(100), 100, 4096);
  } else if (strcmp(first, "pvalloc") == 0) {
    use_and_free(pvalloc(100), 4096, 4096);
  } else if (strcmp(first, "dlclose") == 0) {
    want(dlclose(dlopen(NULL, RTLD_LAZY)) == 0);
  } else {
    abort();
  }
}
