/* SPDX-License-Identifier: MIT
 * interpose_jemalloc.c - jemalloc's own family, for programs linked with it. When the allocator behind has none of these
 * names (a program only asked whether they exist), they are answered through its malloc: a weak symbol that is there must
 * work. (No header: nobody calls these.) */
#include <errno.h>
#include <string.h>

#include "hot.h"
#include "next_malloc.h"
#include "recorder.h"
#include "sampled_path.h"
#include "sampler.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* jemalloc's header is not needed to interpose it */

/* Flags of the family: log2 of the alignment in the low six bits, and one that asks for zeroed memory. */
enum { ALIGN_LOG2_MASK = 63, ZERO_FLAG = 0x40 };

static void *next_mallocx(size_t size, int flags) {
  if (HP_LIKELY(hp_next.mallocx != NULL)) return hp_next.mallocx(size, flags);
  size_t alignment = (size_t)1 << (flags & ALIGN_LOG2_MASK);
  void *ptr = alignment > 16 ? hp_next.memalign(alignment, size) : hp_hot.real_malloc(size);
  if (ptr != NULL && (flags & ZERO_FLAG) != 0) memset(ptr, 0, size);
  return ptr;
}

static void *next_rallocx(void *ptr, size_t size, int flags) {
  if (HP_LIKELY(hp_next.rallocx != NULL)) return hp_next.rallocx(ptr, size, flags);
  size_t old = hp_next.malloc_usable_size(ptr);
  void *fresh = next_mallocx(size, flags);
  if (fresh == NULL) return NULL;
  memcpy(fresh, ptr, old < size ? old : size);
  hp_hot.real_free(ptr);
  return fresh;
}

static HP_NOINLINE void *sampled_mallocx(size_t size, int flags) {
  struct hp_frame_start start = HP_FRAME_START();
  float weight = hp_sampled_decide(size);
  void *ptr = next_mallocx(size, flags);
  if (weight != 0) hp_sampled_record(ptr, size, weight, &start);
  return ptr;
}

static HP_NOINLINE void *sampled_rallocx(void *ptr, size_t size, int flags) {
  struct hp_frame_start start = HP_FRAME_START();
  float weight = hp_sampled_decide(size);
  struct hp_live_record record;
  bool was_sample = hp_filter_may_hold(ptr) && hp_sampled_take(ptr, &record);
  void *fresh = next_rallocx(ptr, size, flags);
  if (was_sample) hp_sampled_settle(&record, fresh != NULL);
  if (weight != 0) hp_sampled_record(fresh, size, weight, &start);
  return fresh;
}

/* Resizes in place or not at all: a free and an allocation of the new size when it did. */
static HP_NOINLINE size_t sampled_xallocx(void *ptr, size_t size, size_t extra, int flags) {
  struct hp_frame_start start = HP_FRAME_START();
  struct hp_live_record record;
  bool was_sample = hp_filter_may_hold(ptr) && hp_sampled_take(ptr, &record);
  size_t got = hp_next.xallocx(ptr, size, extra, flags);
  bool is_resized = got >= size;
  if (was_sample) hp_sampled_settle(&record, is_resized);
  if (is_resized) {
    float weight = hp_sampled_decide(size);
    if (weight != 0) hp_sampled_record(ptr, size, weight, &start);
  }
  return got;
}

HP_EXPORT void *mallocx(size_t size, int flags) {
  if (HP_LIKELY(hp_sampler_passes(size))) return next_mallocx(size, flags);
  return sampled_mallocx(size, flags);
}

HP_EXPORT void *rallocx(void *ptr, size_t size, int flags) {
  if (HP_LIKELY(!hp_filter_may_hold(ptr)) && HP_LIKELY(hp_sampler_passes(size))) return next_rallocx(ptr, size, flags);
  return sampled_rallocx(ptr, size, flags);
}

HP_EXPORT size_t xallocx(void *ptr, size_t size, size_t extra, int flags) {
  if (hp_next.xallocx == NULL) return hp_next.malloc_usable_size(ptr);
  return sampled_xallocx(ptr, size, extra, flags);
}

HP_EXPORT size_t sallocx(const void *ptr, int flags) {
  if (HP_LIKELY(hp_next.sallocx != NULL)) return hp_next.sallocx(ptr, flags);
  return hp_next.malloc_usable_size((void *)ptr);
}

HP_EXPORT size_t nallocx(size_t size, int flags) {
  if (HP_LIKELY(hp_next.nallocx != NULL)) return hp_next.nallocx(size, flags);
  return (size + 15) & ~(size_t)15;
}

HP_EXPORT void dallocx(void *ptr, int flags) {
  if (HP_UNLIKELY(hp_filter_may_hold(ptr))) hp_sampled_forget(ptr);
  if (HP_LIKELY(hp_next.dallocx != NULL)) {
    hp_next.dallocx(ptr, flags);
  } else {
    hp_hot.real_free(ptr);
  }
}

HP_EXPORT void sdallocx(void *ptr, size_t size, int flags) {
  if (HP_UNLIKELY(hp_filter_may_hold(ptr))) hp_sampled_forget(ptr);
  if (HP_LIKELY(hp_next.sdallocx != NULL)) {
    hp_next.sdallocx(ptr, size, flags);
  } else {
    hp_hot.real_free(ptr);
  }
}
