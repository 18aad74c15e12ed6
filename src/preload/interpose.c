/* SPDX-License-Identifier: MIT
 * interpose.c - the exported C allocation functions: one test, one tail call. What lies behind the test is in
 * sampled_path.c. (No header: nobody calls these; the program's calls are bound to them by name.) */
#include "hot.h"
#include "next_malloc.h"
#include "sampled_path.h"
#include "sampler.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the prototypes are libc's, and some are newer than it */

HP_EXPORT HP_HOT_CODE void *malloc(size_t size) {
  if (HP_LIKELY(hp_sampler_fits(size))) return hp_hot.malloc(size);
  return hp_sampled_malloc(size);
}

HP_EXPORT HP_HOT_CODE void free(void *ptr) {
  if (HP_LIKELY(!hp_filter_may_hold(ptr))) {
    hp_hot.real_free(ptr);
    return;
  }
  hp_sampled_free(ptr);
}

HP_EXPORT HP_HOT_CODE void *calloc(size_t n, size_t size) {
  size_t bytes;
  if (HP_LIKELY(!__builtin_mul_overflow(n, size, &bytes)) && HP_LIKELY(hp_sampler_passes(bytes))) {
    return hp_hot.real_calloc(n, size);
  }
  return hp_sampled_calloc(n, size);
}

HP_EXPORT HP_HOT_CODE void *realloc(void *ptr, size_t size) {
  if (HP_LIKELY(!hp_filter_may_hold(ptr)) && HP_LIKELY(hp_sampler_passes(size))) return hp_hot.real_realloc(ptr, size);
  return hp_sampled_realloc(ptr, size);
}

HP_EXPORT int posix_memalign(void **out, size_t alignment, size_t size) {
  if (HP_LIKELY(hp_sampler_passes(size))) return hp_next.posix_memalign(out, alignment, size);
  return hp_sampled_posix_memalign(out, alignment, size);
}

HP_EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  if (HP_LIKELY(hp_sampler_passes(size))) return hp_next.aligned_alloc(alignment, size);
  return hp_sampled_aligned(alignment, size, hp_next.aligned_alloc);
}

HP_EXPORT void *memalign(size_t alignment, size_t size) {
  if (HP_LIKELY(hp_sampler_passes(size))) return hp_next.memalign(alignment, size);
  return hp_sampled_aligned(alignment, size, hp_next.memalign);
}

HP_EXPORT void *valloc(size_t size) {
  if (HP_LIKELY(hp_sampler_passes(size))) return hp_next.valloc(size);
  return hp_sampled_valloc(size, hp_next.valloc);
}

HP_EXPORT void *pvalloc(size_t size) {
  if (HP_LIKELY(hp_sampler_passes(size))) return hp_next.pvalloc(size);
  return hp_sampled_valloc(size, hp_next.pvalloc);
}
