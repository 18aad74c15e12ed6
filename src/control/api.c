/* SPDX-License-Identifier: MIT
 * api.c - the public calls of include/heapprof.h. Threads: any. */
#define HEAPPROF_IMPLEMENTATION
#include <string.h>

#include "allocator_stats.h"
#include "books.h"
#include "budget.h"
#include "compiler.h"
#include "dump.h"
#include "fork.h"
#include "heapprof.h"
#include "helper.h"
#include "live_table.h"
#include "next_malloc.h"
#include "process.h"
#include "recorder.h"
#include "sampled_path.h"
#include "sampler.h"
#include "stack_table.h"
#include "thread_state.h"
#include "trigger.h"

enum { DUMP_WAIT_SECONDS = 60 };

/* The rate that heapprof_start() goes back to. */
static uint64_t wanted_rate; /* atomic; 0: the configured one, or the default */

static uint64_t rate_when_on(void) {
  uint64_t rate = hp_load_relaxed(&wanted_rate);
  if (rate == 0) rate = hp_process.config.sample_rate_bytes;
  return rate == 0 ? HP_SAMPLE_RATE_DEFAULT : rate;
}

HP_EXPORT int heapprof_active(void) { return !hp_process.is_inert && hp_sampler_rate() != 0; }

HP_EXPORT int heapprof_start(void) {
  if (hp_process.is_inert) return -EPERM;
  if (hp_sampler_rate() == 0) hp_sampled_change_rate(rate_when_on());
  hp_helper_check();
  return 0;
}

HP_EXPORT int heapprof_stop(void) {
  if (hp_process.is_inert) return -EPERM;
  if (hp_sampler_rate() != 0) hp_sampled_change_rate(0);
  return 0;
}

HP_EXPORT int heapprof_set_sample_rate(uint64_t bytes) {
  if (hp_process.is_inert) return -EPERM;
  if (bytes > HP_SAMPLE_RATE_MAX) return -EINVAL;
  if (bytes != 0) hp_store_relaxed(&wanted_rate, bytes);
  if (hp_sampler_rate() != bytes) hp_sampled_change_rate(bytes);
  hp_helper_check();
  return 0;
}

HP_EXPORT int heapprof_dump(const char *path) {
  hp_fork_notice();
  if (hp_process.is_inert) return -EPERM;
  if (hp_thread_is_inside_lock() || hp_fork_has_dump_lock()) return -EBUSY;
  int saved_errno = errno;
  hp_section_enter();
  hp_allocator_figures_refresh();
  int result = -EBUSY;
  if (hp_dump_lock_for((int64_t)DUMP_WAIT_SECONDS * 1000000000)) {
    hp_trigger_note_growth();
    result = hp_dump_write(HP_DUMP_API, path);
    hp_dump_unlock();
  }
  hp_sampled_leave_section();
  hp_trigger_look_again();
  errno = saved_errno;
  return result;
}

HP_EXPORT int heapprof_reset(void) {
  hp_fork_notice();
  if (hp_process.is_inert) return -EPERM;
  if (hp_thread_is_inside_lock() || hp_fork_has_dump_lock()) return -EBUSY;
  hp_section_enter();
  int result = -EBUSY;
  if (hp_dump_lock_for((int64_t)DUMP_WAIT_SECONDS * 1000000000)) {
    result = hp_books_reset();
    if (result == 0) hp_process.alloc_start = hp_moment_now();
    hp_dump_unlock();
  }
  hp_sampled_leave_section();
  hp_trigger_look_again();
  return result;
}

static uint64_t whole(double total) { return total < 0x1p63 ? (uint64_t)total : (uint64_t)1 << 63; }

static void fill_estimates(struct heapprof_stats *out) {
  struct hp_stack_totals totals;
  hp_stack_table_totals(&totals);
  out->stacks = hp_stack_table_count() - HP_STACK_ID_FIRST;
  out->alloc_objects_estimate = whole(totals.alloc_objects);
  out->alloc_bytes_estimate = whole(totals.alloc_bytes);
  out->inuse_objects_estimate = whole(totals.inuse_objects);
  out->inuse_bytes_estimate = whole(totals.inuse_bytes);
}

/* No version of the structure will be as large: nobody has set the size. */
enum { STATS_SIZE_MAX = 64 * 1024 };

HP_EXPORT int heapprof_stats(struct heapprof_stats *caller_out) {
  size_t size = caller_out->struct_size;
  struct heapprof_stats s = {.struct_size = size};
  if (size < sizeof s || size > STATS_SIZE_MAX) return -EINVAL; /* this is the first version */
  fill_estimates(&s);
  struct hp_live_moments moments;
  hp_live_table_moments(&moments);
  struct hp_dump_stats dumps;
  hp_dump_get_stats(&dumps);
  const struct hp_recorder_losses *l = &hp_recorder_losses;
  s.sample_rate_bytes = hp_sampler_rate();
  s.samples = moments.samples;
  s.live_samples = hp_live_table_count();
  s.metadata_bytes = hp_memory_used();
  s.lost_live_table_full = hp_load_relaxed(&l->live_table_full);
  s.lost_stack_table_full = hp_load_relaxed(&l->stack_table_full);
  s.unwind_failed = hp_load_relaxed(&l->unwind_failed);
  s.stacks_truncated = hp_load_relaxed(&l->truncated);
  s.reentrant = hp_load_relaxed(&l->reentrant);
  s.missed_frees = hp_load_relaxed(&l->missed_frees);
  s.dumps = dumps.written;
  s.dumps_failed = dumps.failed;
  s.dump_nanos_min = dumps.nanos_min;
  s.dump_nanos_max = dumps.nanos_max;
  s.dump_nanos_total = dumps.nanos_total;
  memset(caller_out, 0, size);
  memcpy(caller_out, &s, sizeof s);
  caller_out->struct_size = size;
  return 0;
}

static HP_NOINLINE void report_sampled(const void *ptr, size_t size) {
  struct hp_frame_start start = HP_FRAME_START();
  float weight = hp_sampled_decide(size);
  if (weight != 0) hp_sampled_record((void *)(uintptr_t)ptr, size, weight, &start);
}

HP_EXPORT int heapprof_report_alloc(const void *ptr, size_t size) {
  if (hp_process.is_inert) return -EPERM;
  if (!hp_sampler_passes(size)) report_sampled(ptr, size);
  return 0;
}

HP_EXPORT int heapprof_report_free(const void *ptr) {
  if (hp_process.is_inert) return -EPERM;
  if (hp_filter_may_hold(ptr)) hp_sampled_forget((void *)(uintptr_t)ptr);
  return 0;
}
