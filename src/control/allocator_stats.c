/* SPDX-License-Identifier: MIT
 * allocator_stats.c - see allocator_stats.h. The figures are published with a sequence counter: odd while being written; a
 * reader that meets a writer says it has none. */
#include "allocator_stats.h"

#include <malloc.h>
#include <string.h>

#include "libc_names.h"
#include "next_malloc.h"
#include "process.h"

struct figures {
  uint64_t inuse_bytes, free_bytes, mmap_bytes, system_bytes;
  int64_t read_nanos;
  struct hp_stack_totals totals;
  struct hp_live_moments moments;
};

static const char *allocator_name = "other";
static bool (*read_figures)(struct figures *out);
static struct figures published;
static uint32_t sequence; /* atomic; 0: never read */

/* Bound by the loader to whoever defines them, or NULL: looking them up by dlsym costs 5 us for each that is missing. */
extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
extern int MallocExtension_GetNumericProperty(const char *, size_t *) __attribute__((weak));
extern void mi_process_info(size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *)
    __attribute__((weak));

/* glibc 2.33. Before, there is mallinfo, whose figures are ints: none at all rather than those of a heap above 2 GiB. */
static struct mallinfo2 (*glibc_mallinfo2)(void);

static bool read_glibc(struct figures *out) {
  struct mallinfo2 info = glibc_mallinfo2();
  out->inuse_bytes = info.uordblks + info.hblkhd;
  out->free_bytes = info.fordblks;
  out->mmap_bytes = info.hblkhd;
  out->system_bytes = info.arena + info.hblkhd;
  return true;
}

static bool mallctl_number(const char *name, uint64_t *out) {
  size_t value = 0, n = sizeof value;
  if (mallctl(name, &value, &n, NULL, 0) != 0) return false;
  *out = value;
  return true;
}

static bool read_jemalloc(struct figures *out) {
  uint64_t epoch = 1, allocated = 0, resident = 0, mapped = 0, retained = 0, metadata = 0;
  mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
  if (!mallctl_number("stats.allocated", &allocated) || !mallctl_number("stats.resident", &resident)) return false;
  out->inuse_bytes = allocated;
  out->free_bytes = resident > allocated ? resident - allocated : 0;
  out->mmap_bytes = 0;
  /* Not stats.resident: pages that are given back lazily stay with the process until somebody needs them. */
  if (!mallctl_number("stats.mapped", &mapped) || !mallctl_number("stats.metadata", &metadata)) return false;
  mallctl_number("stats.retained", &retained);
  out->system_bytes = mapped + retained + metadata;
  return true;
}

static bool read_tcmalloc(struct figures *out) {
  size_t inuse = 0, heap = 0, unmapped = 0;
  if (!MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &inuse)) return false;
  if (!MallocExtension_GetNumericProperty("generic.heap_size", &heap)) return false;
  MallocExtension_GetNumericProperty("tcmalloc.pageheap_unmapped_bytes", &unmapped);
  out->inuse_bytes = inuse;
  out->free_bytes = heap > inuse + unmapped ? heap - inuse - unmapped : 0;
  out->mmap_bytes = 0;
  out->system_bytes = heap;
  return true;
}

/* mimalloc exports what it has committed, not what it has handed out: all of it counts as the allocator's. */
static bool read_mimalloc(struct figures *out) {
  size_t commit = 0, peak = 0, unused = 0;
  mi_process_info(&unused, &unused, &unused, &unused, &unused, &commit, &peak, &unused);
  out->inuse_bytes = commit;
  out->free_bytes = 0;
  out->mmap_bytes = 0;
  out->system_bytes = peak > commit ? peak : commit;
  return commit != 0;
}

void hp_allocator_stats_init(void) {
  if (mallctl != NULL) {
    allocator_name = "jemalloc";
    read_figures = read_jemalloc;
  } else if (MallocExtension_GetNumericProperty != NULL) {
    allocator_name = "tcmalloc";
    read_figures = read_tcmalloc;
  } else if (mi_process_info != NULL) {
    allocator_name = "mimalloc";
    read_figures = read_mimalloc;
  } else {
    allocator_name = "glibc";
    if (hp_libc_is_at_least(33)) glibc_mallinfo2 = (struct mallinfo2(*)(void))hp_next_find("mallinfo2");
    if (glibc_mallinfo2 != NULL) read_figures = read_glibc;
  }
}

void hp_allocator_figures_refresh(void) {
  struct figures fresh = {0};
  if (read_figures == NULL) return;
  hp_stack_table_totals(&fresh.totals);
  hp_live_table_moments(&fresh.moments);
  if (!read_figures(&fresh)) return;
  fresh.read_nanos = hp_process_coarse_nanos();
  uint32_t before = hp_load_relaxed(&sequence);
  if ((before & 1) != 0 ||
      !__atomic_compare_exchange_n(&sequence, &before, before + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return; /* another thread is at it */
  }
  published = fresh;
  hp_store_release(&sequence, before + 2);
}

void hp_allocator_figures_after_fork(void) {
  if ((hp_load_relaxed(&sequence) & 1) != 0) hp_store_relaxed(&sequence, 0);
}

void hp_allocator_figures_get(struct hp_allocator_figures *out) {
  memset(out, 0, sizeof *out);
  out->name = allocator_name;
  uint32_t before = hp_load_acquire(&sequence);
  struct figures f = published;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (before == 0 || (before & 1) != 0 || hp_load_relaxed(&sequence) != before) return;
  out->has_figures = true;
  out->inuse_bytes = f.inuse_bytes;
  out->free_bytes = f.free_bytes;
  out->mmap_bytes = f.mmap_bytes;
  out->system_bytes = f.system_bytes;
  int64_t age = hp_process_coarse_nanos() - f.read_nanos;
  out->age_nanos = age > 0 ? (uint64_t)age : 0;
  out->number = before;
  out->totals = f.totals;
  out->moments = f.moments;
}
