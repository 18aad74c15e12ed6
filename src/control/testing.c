/* SPDX-License-Identifier: MIT
 * testing.c - the hooks of the testing build: libheapprof-testing.so is the library's own objects plus this file (target
 * heapprof_testing, tests/support). Nothing of it is in libheapprof.so.
 *
 * How         by the linker's --wrap at the few calls that cross from one file to another, and by the setters that the
 *             tables have for their unit tests; so the code under test is the code that ships, but for sink.c, which has its
 *             faults.
 * Callers     tests/behaviour, through tests/support/heapprof_testing.h. Threads as said there. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "budget.h"
#include "dump.h"
#include "heap.h"
#include "heapprof_testing.h"
#include "hot.h"
#include "labels.h"
#include "live_table.h"
#include "process.h"
#include "recorder.h"
#include "sampler.h"
#include "sink.h"
#include "stack_table.h"
#include "thread_state.h"
#include "trigger.h"
#include "unwinder.h"

/* ---- sampling ---- */
float __real_hp_sampler_decide_slow(size_t size);
float __wrap_hp_sampler_decide_slow(size_t size);

static __thread bool is_forced HP_TLS;

void heapprof_test_seed(uint64_t seed) {
  hp_sampler_test_seed(seed);
  hp_sampler_reseed();
}

void heapprof_test_force_sample(void) {
  is_forced = true;
  hp_sampler_forget_gap(); /* the hot test lets nothing pass */
}

float __wrap_hp_sampler_decide_slow(size_t size) {
  float weight = __real_hp_sampler_decide_slow(size);
  if (!is_forced || hp_thread.section != 0) return weight;
  is_forced = false;
  return weight != 0 ? weight : (float)hp_sampler_weight(size, hp_sampler_rate());
}

/* ---- the tables ---- */
bool __real_hp_recorder_take(uintptr_t address, struct hp_live_record *out);
bool __wrap_hp_recorder_take(uintptr_t address, struct hp_live_record *out);

static uint64_t takes; /* atomic */

bool __wrap_hp_recorder_take(uintptr_t address, struct hp_live_record *out) {
  hp_add_relaxed(&takes, 1);
  return __real_hp_recorder_take(address, out);
}

uint64_t heapprof_test_takes(void) { return hp_load_relaxed(&takes); }
void heapprof_test_force_hash(bool constant) { hp_stack_table_test_force_hash(constant); }
void heapprof_test_limit_live(uint64_t records) { hp_live_table_test_limit(records); }
void heapprof_test_limit_stacks(uint32_t entries) { hp_stack_table_test_limit(entries); }

void heapprof_test_record(uintptr_t address, uint64_t size, float weight, const uintptr_t *pcs, uint32_t depth) {
  struct hp_sample sample = {.address = address, .size = size, .weight = weight, .pcs = pcs, .depth = depth};
  hp_section_enter();
  hp_recorder_add(&sample);
  hp_section_leave();
}

/* ---- memory ---- */
void *__real_hp_heap_alloc(size_t size);
void *__wrap_hp_heap_alloc(size_t size);
void *__real_hp_heap_alloc_aligned_zero(size_t alignment, size_t size);
void *__wrap_hp_heap_alloc_aligned_zero(size_t alignment, size_t size);
bool __real_hp_memory_reserve(size_t size);
bool __wrap_hp_memory_reserve(size_t size);

static uint64_t first_refused, last_refused, pieces; /* atomic */

static bool is_refused(void) {
  uint64_t n = hp_add_relaxed(&pieces, 1) + 1;
  return n >= hp_load_relaxed(&first_refused) && n <= hp_load_relaxed(&last_refused);
}

void *__wrap_hp_heap_alloc(size_t size) { return is_refused() ? NULL : __real_hp_heap_alloc(size); }
void *__wrap_hp_heap_alloc_aligned_zero(size_t alignment, size_t size) {
  return is_refused() ? NULL : __real_hp_heap_alloc_aligned_zero(alignment, size);
}
bool __wrap_hp_memory_reserve(size_t size) { return !is_refused() && __real_hp_memory_reserve(size); }

void heapprof_test_refuse_memory(uint64_t first, uint64_t last) {
  hp_store_relaxed(&last_refused, 0);
  hp_store_relaxed(&pieces, 0);
  hp_store_relaxed(&first_refused, first);
  hp_store_relaxed(&last_refused, last);
}
bool heapprof_test_was_refused(void) { return hp_load_relaxed(&pieces) >= hp_load_relaxed(&first_refused); }

/* ---- growth ---- */
uint64_t __real_hp_recorder_inuse_bytes(void);
uint64_t __wrap_hp_recorder_inuse_bytes(void);

static bool is_inuse_told; /* by one thread */
static uint64_t inuse_first, inuse_then;

uint64_t __wrap_hp_recorder_inuse_bytes(void) {
  if (!is_inuse_told) return __real_hp_recorder_inuse_bytes();
  uint64_t told = inuse_first;
  inuse_first = inuse_then;
  return told;
}

void heapprof_test_inuse(uint64_t first_bytes, uint64_t then_bytes) {
  is_inuse_told = true;
  inuse_first = first_bytes;
  inuse_then = then_bytes;
}

/* ---- the order of record and real free ---- */
static void (*free_behind)(void *);
static uint64_t free_calls, late_records; /* atomic */

struct wanted {
  uintptr_t address;
  bool is_found;
};

static void visit(void *context, const struct hp_live_record *record) {
  struct wanted *wanted = context;
  if (record->address == wanted->address) wanted->is_found = true;
}

static void checking_free(void *ptr) {
  struct wanted wanted = {.address = (uintptr_t)ptr};
  hp_section_enter();
  if (ptr != NULL) hp_live_table_walk(visit, &wanted);
  hp_section_leave();
  hp_add_relaxed(&free_calls, 1);
  if (wanted.is_found) hp_add_relaxed(&late_records, 1);
  free_behind(ptr);
}

void heapprof_test_check_order(bool on) {
  if (free_behind == NULL) free_behind = hp_hot.real_free;
  hp_hot.real_free = on ? checking_free : free_behind;
}
uint64_t heapprof_test_order_checks(void) { return hp_load_relaxed(&free_calls); }
uint64_t heapprof_test_late_records(void) { return hp_load_relaxed(&late_records); }

/* ---- the unwinder ---- */
size_t __real_hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags);
size_t __wrap_hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags);

static enum heapprof_test_unwinder unwinder;
static uint64_t unwinder_mallocs; /* atomic */

static void malloc_as_the_program_does(void) {
  void *(*program_malloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
  void (*program_free)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "free");
  hp_add_relaxed(&unwinder_mallocs, 1);
  program_free(program_malloc(64));
}

size_t __wrap_hp_unwind(const struct hp_frame_start *start, uintptr_t *pcs, size_t max, unsigned *out_flags) {
  if (unwinder == HEAPPROF_TEST_UNWINDER_FAILS) return 0;
  if (unwinder == HEAPPROF_TEST_UNWINDER_MALLOCS) malloc_as_the_program_does();
  if (unwinder == HEAPPROF_TEST_UNWINDER_SIGNALS) raise(SIGUSR2);
  return __real_hp_unwind(start, pcs, max, out_flags);
}

void heapprof_test_unwinder(enum heapprof_test_unwinder which) { unwinder = which; }
uint64_t heapprof_test_unwinder_mallocs(void) { return hp_load_relaxed(&unwinder_mallocs); }

/* ---- dumps ---- */
void heapprof_test_pause_dump(void (*pause)(void)) { hp_dump_test_pause = pause; }
bool heapprof_test_dump_try_lock(void) { return hp_dump_try_lock(); }
void heapprof_test_dump_unlock(void) { hp_dump_unlock(); }

void heapprof_test_fail_output(unsigned write_call, int write_errno, int open_errno, int rename_errno) {
  hp_sink_faults = (struct hp_sink_faults){
      .write_call = write_call, .write_errno = write_errno, .open_errno = open_errno, .rename_errno = rename_errno};
}

int heapprof_test_sink_misuse(const char *path) {
  static struct hp_file_sink sink;
  sink.fd = -1;
  if (hp_file_sink_commit(&sink) != -EBADF) return 1; /* never opened */
  hp_file_sink_abort(&sink);
  if (hp_file_sink_open(&sink, path) != 0) return 2;
  if (hp_file_sink_commit(&sink) != 0) return 3;
  if (hp_file_sink_commit(&sink) != -EBADF) return 4; /* twice */
  hp_file_sink_abort(&sink);
  return 0;
}

/* ---- clocks ---- */
int64_t __real_hp_process_coarse_nanos(void);
int64_t __wrap_hp_process_coarse_nanos(void);
int64_t __real_hp_process_exact_nanos(void);
int64_t __wrap_hp_process_exact_nanos(void);
uint32_t __real_hp_labels_now_seconds(void);
uint32_t __wrap_hp_labels_now_seconds(void);

static int64_t clock_offset_nanos; /* atomic */
static int64_t held_nanos;         /* atomic; 0: the clock goes on */

int64_t __wrap_hp_process_coarse_nanos(void) {
  int64_t held = hp_load_relaxed(&held_nanos);
  return (held != 0 ? held : __real_hp_process_coarse_nanos()) + hp_load_relaxed(&clock_offset_nanos);
}
int64_t __wrap_hp_process_exact_nanos(void) {
  return __real_hp_process_exact_nanos() + hp_load_relaxed(&clock_offset_nanos);
}
uint32_t __wrap_hp_labels_now_seconds(void) {
  int64_t held = hp_load_relaxed(&held_nanos);
  uint32_t now = held != 0 ? (uint32_t)(held / 1000000000) : __real_hp_labels_now_seconds();
  return now + (uint32_t)(hp_load_relaxed(&clock_offset_nanos) / 1000000000);
}

void heapprof_test_advance_clock(int64_t nanos) { __atomic_fetch_add(&clock_offset_nanos, nanos, __ATOMIC_RELAXED); }
void heapprof_test_hold_clock(void) { hp_store_relaxed(&held_nanos, __real_hp_process_coarse_nanos()); }
int64_t heapprof_test_clock(void) { return __wrap_hp_process_coarse_nanos(); }
int64_t heapprof_test_period_check(int64_t now_nanos, bool *out_is_due) {
  return hp_trigger_period_check(now_nanos, out_is_due);
}

/* ---- sums ---- */
void heapprof_test_sums(double out[4]) {
  struct hp_stack_totals totals;
  hp_stack_table_totals(&totals);
  memcpy(out, (const double[]){totals.alloc_objects, totals.alloc_bytes, totals.inuse_objects, totals.inuse_bytes},
         4 * sizeof *out);
}
