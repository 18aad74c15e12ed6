/* SPDX-License-Identifier: MIT
 * heapprof.h - control heapprof from inside the program it profiles.
 *
 * The program includes this header and links nothing (glibc before 2.34: -ldl). When it runs under
 * LD_PRELOAD=libheapprof.so (or `heapprof run`) the calls reach the library; otherwise each is a load, a test and a return,
 * and answers -ENOSYS (heapprof_active: 0). The library is looked up once for each call and source file.
 * All calls may be made from any thread, at any time. None is meant for signal handlers. C11 and C++98 or later, gcc and clang.
 * Results: 0, or a negative errno.
 */
#ifndef HEAPPROF_H
#define HEAPPROF_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEAPPROF_VERSION_MAJOR 0
#define HEAPPROF_VERSION_MINOR 1
#define HEAPPROF_VERSION_PATCH 0

/* Counters since the process started (a forked child: since the fork for the dump counters). `struct_size` is how much of it the
 * program knows, which heapprof_stats() below says for it: a library of another age fills in what both know and zeroes the rest. */
struct heapprof_stats {
  size_t struct_size;              /* who calls the library by its own way (dlsym) sets it first */
  uint64_t sample_rate_bytes;      /* mean bytes between samples now; 0: off */
  uint64_t samples;                /* raw samples taken */
  uint64_t live_samples;           /* of these, blocks not yet freed */
  uint64_t stacks;                 /* distinct stacks held */
  uint64_t alloc_objects_estimate; /* cumulative, unsampled */
  uint64_t alloc_bytes_estimate;
  uint64_t inuse_objects_estimate; /* live now, unsampled */
  uint64_t inuse_bytes_estimate;
  uint64_t metadata_bytes;        /* the profiler's own memory */
  uint64_t lost_live_table_full;  /* samples counted as allocated, but not as in use */
  uint64_t lost_stack_table_full; /* samples on the pseudo frame [stack table full] */
  uint64_t unwind_failed;         /* samples on the pseudo frame [no stack] */
  uint64_t stacks_truncated;      /* samples whose stack was deeper than the limit */
  uint64_t reentrant;             /* calls that reached us from inside the profiler, passed through unsampled */
  uint64_t missed_frees;          /* records closed because their address was handed out again */
  uint64_t dumps;                 /* profiles written */
  uint64_t dumps_failed;
  uint64_t dump_nanos_min; /* wall time of the dumps written */
  uint64_t dump_nanos_max;
  uint64_t dump_nanos_total;
};

#ifdef HEAPPROF_IMPLEMENTATION /* the library itself */

int heapprof_active(void);
int heapprof_start(void);
int heapprof_stop(void);
int heapprof_set_sample_rate(uint64_t bytes);
int heapprof_dump(const char *path);
int heapprof_reset(void);
int heapprof_stats(struct heapprof_stats *out);
int heapprof_report_alloc(const void *ptr, size_t size);
int heapprof_report_free(const void *ptr);

#else

#include <dlfcn.h>

/* The library's function `name`, or null; looked up at the first call and remembered in *slot. */
static inline void *heapprof_find_(void **slot, const char *name) {
  void *found = __atomic_load_n(slot, __ATOMIC_RELAXED);
  if (found == NULL) {
    found = dlsym((void *)0 /* RTLD_DEFAULT */, name);
    if (found == NULL) found = (void *)-1;
    __atomic_store_n(slot, found, __ATOMIC_RELAXED);
  }
  return found == (void *)-1 ? NULL : found;
}

#define HEAPPROF_CALL_(name, absent, type, args)                 \
  static void *heapprof_slot_;                                   \
  void *heapprof_found_ = heapprof_find_(&heapprof_slot_, name); \
  if (heapprof_found_ == NULL) return absent;                    \
  union {                                                        \
    void *object;                                                \
    type;                                                        \
  } heapprof_call_;                                              \
  heapprof_call_.object = heapprof_found_;                       \
  return heapprof_call_.function args

/* 1 when the library is loaded, intercepts this process's allocator and samples (rate not 0, not stopped); else 0. */
static inline int heapprof_active(void) { HEAPPROF_CALL_("heapprof_active", 0, int (*function)(void), ()); }

/* Sample again after heapprof_stop(), or for the first time when HEAPPROF_SAMPLE_RATE=0 (then at the default rate unless
 * heapprof_set_sample_rate() named another). Starting twice is no error. -EPERM: the process is not profiled (inert). */
static inline int heapprof_start(void) { HEAPPROF_CALL_("heapprof_start", -ENOSYS, int (*function)(void), ()); }

/* Take no more samples. Blocks sampled so far stay in the books and leave them when they are freed. */
static inline int heapprof_stop(void) { HEAPPROF_CALL_("heapprof_stop", -ENOSYS, int (*function)(void), ()); }

/* Mean bytes between samples from now on, for every thread at its next allocation; 1: record every allocation; 0: off.
 * -EINVAL: above 2^40. */
static inline int heapprof_set_sample_rate(uint64_t bytes) {
  HEAPPROF_CALL_("heapprof_set_sample_rate", -ENOSYS, int (*function)(uint64_t), (bytes));
}

/* Write a profile now and return when it is written. NULL: at the next name of HEAPPROF_OUT; otherwise to this path (a
 * template like HEAPPROF_OUT). The negative errno of what failed: -ENOENT, -EACCES, -ENOSPC, ... */
static inline int heapprof_dump(const char *path) {
  HEAPPROF_CALL_("heapprof_dump", -ENOSYS, int (*function)(const char *), (path));
}

/* The alloc columns of later profiles count from now; what is in use stays, and counts as allocated. */
static inline int heapprof_reset(void) { HEAPPROF_CALL_("heapprof_reset", -ENOSYS, int (*function)(void), ()); }

/* Fill *out, whatever is in it. */
static inline int heapprof_stats(struct heapprof_stats *out) {
  out->struct_size = sizeof *out;
  HEAPPROF_CALL_("heapprof_stats", -ENOSYS, int (*function)(struct heapprof_stats *), (out));
}

/* A custom allocator hands out, or takes back, `ptr`. Sampled like malloc, with the caller of the function that calls this
 * in the stack. `ptr` must not lie at an address that malloc returned and that is still in use. */
static inline int heapprof_report_alloc(const void *ptr, size_t size) {
  HEAPPROF_CALL_("heapprof_report_alloc", -ENOSYS, int (*function)(const void *, size_t), (ptr, size));
}
static inline int heapprof_report_free(const void *ptr) {
  HEAPPROF_CALL_("heapprof_report_free", -ENOSYS, int (*function)(const void *), (ptr));
}

#undef HEAPPROF_CALL_

#endif /* HEAPPROF_IMPLEMENTATION */

#ifdef __cplusplus
}
#endif

#endif /* HEAPPROF_H */
