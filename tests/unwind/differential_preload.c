/* SPDX-License-Identifier: MIT
 * differential_preload.c - preloaded into real programs: every call of malloc, calloc, realloc and free is walked, with the
 * thread's record and without, and the two stacks must be equal; a fraction is also compared with libunwind's. At exit one
 * line goes to the file DIFFERENTIAL_OUT (appended): program, walks, differences, walks that used a record, incomplete ones,
 * comparisons with libunwind and differences there. Exec'd children do the same. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwinder.h"
#include "verifying_unwinder.h"
#include "walk_compare.h"

enum { FRAMES_MAX = 132, LIBUNWIND_EVERY = 4096, BOOTSTRAP_BYTES = 65536, OWN_FRAMES_MAX = 4 };

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static uint64_t incomplete_walks;
static uintptr_t incomplete_pc; /* where the last of them ended */
static __thread int section HP_TLS;
static char bootstrap[BOOTSTRAP_BYTES];
static size_t bootstrap_used;

HP_EXPORT void *malloc(size_t size);
HP_EXPORT void *calloc(size_t count, size_t size);
HP_EXPORT void *realloc(void *ptr, size_t size);
HP_EXPORT void free(void *ptr);
HP_EXPORT int dlclose(void *handle);

static void *bootstrap_alloc(size_t size) {
  size_t at = (bootstrap_used + 15) & ~(size_t)15;
  if (size > BOOTSTRAP_BYTES - at) return NULL;
  bootstrap_used = at + size;
  return bootstrap + at;
}

static bool is_bootstrap(const void *ptr) { return (uintptr_t)ptr - (uintptr_t)bootstrap < BOOTSTRAP_BYTES; }

static void find_next(void) {
  section++;
  next_malloc = (void *(*)(size_t))(uintptr_t)dlsym(RTLD_NEXT, "malloc");
  next_calloc = (void *(*)(size_t, size_t))(uintptr_t)dlsym(RTLD_NEXT, "calloc");
  next_realloc = (void *(*)(void *, size_t))(uintptr_t)dlsym(RTLD_NEXT, "realloc");
  next_free = (void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "free");
  section--;
}

/* One thread at a time: the buffers are too large for the threads of some programs. */
static void compare_with_libunwind(void) {
  static bool is_busy;
  static struct walk_pair pair;
  if (hp_exchange(&is_busy, true)) return;
  walk_both(&pair);
  size_t own_frames = pair.theirs_count - pair.ours_count; /* of this library, which ours leaves out */
  if (own_frames <= OWN_FRAMES_MAX) {
    pair.theirs_count -= own_frames;
    memmove(pair.theirs, pair.theirs + own_frames, pair.theirs_count * sizeof(*pair.theirs));
  }
  if (pair.ours_count < WALK_MAX) walk_pair_check(&pair);
  hp_store_release(&is_busy, false);
}

static HP_NOINLINE void verify(struct hp_frame_start start) {
  static __thread unsigned countdown HP_TLS;
  uintptr_t pcs[FRAMES_MAX];
  unsigned flags;
  if (section++ == 0) {
    size_t n = hp_unwind(&start, pcs, FRAMES_MAX, &flags);
    if ((flags & HP_UNWIND_INCOMPLETE) && n > 0) {
      hp_add_relaxed(&incomplete_walks, 1);
      incomplete_pc = pcs[n - 1];
    }
    if (++countdown % LIBUNWIND_EVERY == 0) compare_with_libunwind();
  }
  section--;
}

void *malloc(size_t size) {
  if (next_malloc == NULL) {
    if (section != 0) return bootstrap_alloc(size);
    find_next();
  }
  verify(HP_FRAME_START());
  return next_malloc(size);
}

void *calloc(size_t count, size_t size) {
  if (next_malloc == NULL) {
    if (section != 0) return bootstrap_alloc(count * size);
    find_next();
  }
  verify(HP_FRAME_START());
  return next_calloc(count, size);
}

void *realloc(void *ptr, size_t size) {
  if (next_malloc == NULL) find_next();
  if (is_bootstrap(ptr)) {
    void *moved = malloc(size);
    if (moved != NULL) memcpy(moved, ptr, size);
    return moved;
  }
  verify(HP_FRAME_START());
  return next_realloc(ptr, size);
}

void free(void *ptr) {
  if (ptr == NULL || is_bootstrap(ptr)) return;
  if (next_malloc == NULL) find_next();
  verify(HP_FRAME_START());
  next_free(ptr);
}

int dlclose(void *handle) {
  static int (*next_dlclose)(void *);
  if (next_dlclose == NULL) next_dlclose = (int (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "dlclose");
  hp_unwind_before_unload();
  int result = next_dlclose(handle);
  section++;
  hp_unwind_after_unload();
  section--;
  return result;
}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("DIFFERENTIAL_OUT");
  if (path == NULL) return;
  section++;
  char program[64] = "";
  int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  ssize_t n = read(fd, program, sizeof(program) - 1);
  program[n > 0 ? n - 1 : 0] = 0;
  close(fd);
  struct hp_unwind_stats stats;
  hp_unwind_get_stats(&stats);
  Dl_info end = {0};
  if (incomplete_pc != 0) dladdr((void *)incomplete_pc, &end);
  char line[600];
  int length = snprintf(line, sizeof(line),
                        "%s walks %lu differences %lu reused %lu misses %lu slow %lu incomplete %lu (%s+0x%lx) libunwind "
                        "%lu differences %lu\n",
                        program, hp_verified_walks, hp_verified_differences, stats.prefix_reuses, stats.rule_misses,
                        stats.slow_walks, incomplete_walks, end.dli_fname != NULL ? end.dli_fname : "",
                        incomplete_pc - (uintptr_t)end.dli_fbase, walk_comparisons, walk_differences);
  fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (write(fd, line, (size_t)length) < 0) line[0] = 0;
  close(fd);
  section--;
}
