/* SPDX-License-Identifier: MIT
 * sampled_path.c - see sampled_path.h. Stack: a walk of up to 128 frames lives in a local array of 1 KiB; deeper limits take
 * one of a few shared buffers instead, since we run on other people's stacks. */
#include "sampled_path.h"

#include <errno.h>

#include "heap.h"
#include "hot.h"
#include "lock.h"
#include "modules.h"
#include "next_malloc.h"
#include "recorder.h"
#include "sampler.h"
#include "thread_state.h"

enum { LOCAL_FRAMES = 128 + HP_STACK_LEAF_EXTRA + 1, DEEP_BUFFERS = 4 };

void (*hp_sampled_epilogue)(void);

static uint32_t max_frames = 128 + HP_STACK_LEAF_EXTRA;

/* ---- walking and recording ---- */
static struct {
  struct hp_lock lock;
  uintptr_t *pcs; /* HP_STACK_WORDS_MAX words, made at the first use */
} deep_buffers[DEEP_BUFFERS];

void hp_sampled_set_max_depth(uint32_t frames) { max_frames = frames + HP_STACK_LEAF_EXTRA; }

static void close_stacks(const struct hp_module *leaving) {
  hp_stack_table_close_range(leaving->map_start, leaving->map_end, hp_modules_set_of_locked);
}

/* What was seen at its place while it was away (code that belongs to no module) is not its. */
static void reopen_stacks(const struct hp_module *returning) {
  close_stacks(returning);
  hp_modules_set_returning_locked(returning);
  hp_stack_table_reopen_range(returning->map_start, returning->map_end, hp_modules_are_back_locked);
  hp_modules_set_returning_locked(NULL);
}

void hp_sampled_follow_modules(void) {
  static const struct hp_modules_watcher watcher = {.leaving = close_stacks, .returning = reopen_stacks};
  hp_modules_watch(&watcher);
}

static void walk_and_add(struct hp_sample *sample, uintptr_t *pcs, uint32_t room, const struct hp_frame_start *start) {
  unsigned flags = 0;
  sample->depth = (uint32_t)hp_unwind(start, pcs, room, &flags);
  sample->is_truncated = (flags & HP_UNWIND_TRUNCATED) != 0;
  if ((flags & HP_UNWIND_HAS_TAIL) != 0) sample->tail = hp_unwind_tail();
  if ((flags & HP_UNWIND_REPEATED) != 0) sample->memo = hp_unwind_memo();
  sample->pcs = pcs;
  hp_recorder_add(sample);
}

static HP_NOINLINE void add_with_local_buffer(struct hp_sample *sample, const struct hp_frame_start *start) {
  uintptr_t pcs[LOCAL_FRAMES];
  walk_and_add(sample, pcs, max_frames < LOCAL_FRAMES ? max_frames : LOCAL_FRAMES, start);
}

static HP_COLD void add_with_deep_buffer(struct hp_sample *sample, const struct hp_frame_start *start) {
  for (unsigned i = 0; i < DEEP_BUFFERS; i++) {
    if (!hp_lock_try(&deep_buffers[i].lock)) continue;
    if (deep_buffers[i].pcs == NULL) deep_buffers[i].pcs = hp_heap_alloc(HP_STACK_WORDS_MAX * sizeof(uintptr_t));
    if (deep_buffers[i].pcs != NULL) {
      walk_and_add(sample, deep_buffers[i].pcs, max_frames, start);
      hp_lock_release(&deep_buffers[i].lock);
      return;
    }
    hp_lock_release(&deep_buffers[i].lock);
  }
  add_with_local_buffer(sample, start); /* all taken: this one is cut shorter */
}

void hp_sampled_after_fork(void) {
  for (unsigned i = 0; i < DEEP_BUFFERS; i++) deep_buffers[i].lock.word = 0;
}

static void run_epilogue(void) {
  if (hp_sampled_epilogue != NULL && hp_thread.section == 0) hp_sampled_epilogue();
}

void hp_sampled_leave_section(void) {
  hp_section_leave();
  run_epilogue();
}

void hp_sampled_record(void *ptr, size_t size, float weight, const struct hp_frame_start *start) {
  if (ptr == NULL) return;
  int saved_errno = errno;
  hp_section_enter();
  hp_recorder_expect((uintptr_t)ptr); /* the walk takes about as long as the memory */
  struct hp_sample sample = {.address = (uintptr_t)ptr, .size = size, .weight = weight};
  if (HP_LIKELY(max_frames < LOCAL_FRAMES)) {
    add_with_local_buffer(&sample, start);
  } else {
    add_with_deep_buffer(&sample, start);
  }
  hp_sampled_leave_section();
  errno = saved_errno;
}

/* A handler of the program's that interrupted the section may have left it by longjmp, out of a stack overflow (which at rate 1
 * comes to pass in a walk more often than not) or of a timer. Nobody comes to its end then, so it ends here. Not with a lock held,
 * since what that guards may be half changed: such a thread is sampled no more. */
static HP_COLD HP_NOINLINE bool end_section_that_was_left(uintptr_t alive) {
  if (hp_thread.locks_held != 0 || !hp_unwind_was_left(hp_thread.section_frame, hp_thread.section_return, alive))
    return false;
  hp_thread.section = 0;
  return true;
}

float hp_sampled_decide(size_t size) {
  float weight = hp_sampler_decide_slow(size);
  if (HP_UNLIKELY(hp_thread.section != 0) && weight != 0 &&
      !end_section_that_was_left((uintptr_t)__builtin_frame_address(0))) {
    hp_add_relaxed(&hp_recorder_losses.reentrant, 1);
    return 0;
  }
  return weight;
}

/* ---- taking out ----
 * A handler that interrupted this thread while it held a lock leaves the record where it is: it is closed as a missed free
 * when the address comes back. */
bool hp_sampled_take(void *ptr, struct hp_live_record *out) {
  if (hp_thread_is_inside_lock()) return false;
  int saved_errno = errno; /* a realloc that succeeds leaves it alone */
  hp_section_enter();
  bool found = hp_recorder_take((uintptr_t)ptr, out);
  hp_section_leave();
  errno = saved_errno;
  return found;
}

void hp_sampled_settle(const struct hp_live_record *record, bool is_freed) {
  int saved_errno = errno;
  hp_section_enter();
  if (is_freed) {
    hp_recorder_count_free(record);
  } else {
    hp_recorder_put_back(record);
  }
  hp_sampled_leave_section();
  errno = saved_errno;
}

/* A request is served here as everywhere; the clock is looked at by each allocation that is sampled, and here now and then, for
 * programs that are only taking things down. */
static void leave_taking_section(void) {
  enum { TAKINGS_A_LOOK = 16 };
  hp_section_leave();
  hp_sampler_mend_gap();
  if (HP_UNLIKELY(hp_thread.dump_wanted != 0) || ++hp_thread.takings % TAKINGS_A_LOOK == 0) run_epilogue();
}

void hp_sampled_forget(void *ptr) {
  struct hp_live_record record;
  if (hp_thread_is_inside_lock()) return;
  int saved_errno = errno;
  hp_section_enter();
  if (hp_recorder_take((uintptr_t)ptr, &record)) hp_recorder_count_free(&record);
  leave_taking_section();
  errno = saved_errno;
}

HP_NOINLINE void hp_sampled_free(void *ptr) {
  hp_sampled_forget(ptr);
  hp_hot.real_free(ptr);
}

/* ---- what was asked for, when a C++ runtime stands between ---- */
enum { FORWARDERS_MAX = 8 }; /* the forms of operator new */

/* Atomic, filled in order; end 0: not filled yet. */
static struct { uintptr_t start, end; } forwarders[FORWARDERS_MAX];

void hp_sampled_add_forwarder(uintptr_t start, uintptr_t end) {
  for (uint32_t i = 0; i < FORWARDERS_MAX; i++) {
    uintptr_t there = 0;
    bool is_taken =
        !__atomic_compare_exchange_n(&forwarders[i].start, &there, start, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (is_taken && there != start) continue; /* the same: another thread made the same call at the same time */
    hp_store_release(&forwarders[i].end, end);
    return;
  }
}

/* The runtime asks for what it was asked for, 1 instead of 0, rounded up to the alignment. If not, hp_thread.new_size is another call's:
 * this one did not go through ours (a plugin opened with RTLD_DEEPBIND), or a new-handler has allocated in between. */
static bool may_be_asked_for(size_t asked, size_t size, size_t alignment) {
  size_t least = asked + (asked == 0);
  return least <= size && size - least < alignment;
}

static size_t requested_size(size_t size, size_t alignment, const struct hp_frame_start *start) {
  for (uint32_t i = 0; i < FORWARDERS_MAX; i++) {
    uintptr_t end = hp_load_acquire(&forwarders[i].end), first = hp_load_relaxed(&forwarders[i].start);
    if (first == 0) break;
    if (start->pc <= first || start->pc > end) continue;
    return may_be_asked_for(hp_thread.new_size, size, alignment) ? hp_thread.new_size : size;
  }
  return size;
}

/* ---- the twins ---- */
HP_NOINLINE void *hp_sampled_malloc(size_t size) {
  struct hp_frame_start start = HP_FRAME_START();
  float weight = hp_sampled_decide(size);
  void *ptr = hp_hot.real_malloc(size);
  if (weight != 0) hp_sampled_record(ptr, requested_size(size, 1, &start), weight, &start);
  return ptr;
}

/* The hot test has let this one pass without a look at the rate's epoch. */
HP_HOT_CODE static void *malloc_if_current(size_t size) {
  if (HP_LIKELY(hp_sampler_is_current())) return hp_hot.real_malloc(size);
  return hp_sampled_malloc(size);
}

void hp_sampled_change_rate(uint64_t bytes) {
  hp_sampler_set_rate(bytes);
  hp_store_release(&hp_hot.malloc, malloc_if_current);
}

HP_NOINLINE void *hp_sampled_calloc(size_t n, size_t size) {
  struct hp_frame_start start = HP_FRAME_START();
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes)) return hp_hot.real_calloc(n, size);
  float weight = hp_sampled_decide(bytes);
  void *ptr = hp_hot.real_calloc(n, size);
  if (weight != 0) hp_sampled_record(ptr, bytes, weight, &start);
  return ptr;
}

/* A free of ptr and an allocation of size at the caller. The record leaves before the real call: from then on another thread
 * may get the old address. If the real call fails the old block is untouched and the very same record goes back. */
HP_NOINLINE void *hp_sampled_realloc(void *ptr, size_t size) {
  struct hp_frame_start start = HP_FRAME_START();
  float weight = hp_sampled_decide(size);
  struct hp_live_record record;
  bool was_sample = ptr != NULL && hp_filter_may_hold(ptr) && hp_sampled_take(ptr, &record);
  void *fresh = hp_hot.real_realloc(ptr, size);
  if (was_sample) hp_sampled_settle(&record, fresh != NULL || size == 0);
  if (weight != 0) hp_sampled_record(fresh, size, weight, &start);
  return fresh;
}

HP_NOINLINE int hp_sampled_posix_memalign(void **out, size_t alignment, size_t size) {
  struct hp_frame_start start = HP_FRAME_START();
  float weight = hp_sampled_decide(size);
  int result = hp_next.posix_memalign(out, alignment, size);
  if (weight != 0 && result == 0) hp_sampled_record(*out, requested_size(size, alignment, &start), weight, &start);
  return result;
}

HP_NOINLINE void *hp_sampled_aligned(size_t alignment, size_t size, void *(*real)(size_t, size_t)) {
  struct hp_frame_start start = HP_FRAME_START();
  float weight = hp_sampled_decide(size);
  void *ptr = real(alignment, size);
  if (weight != 0) hp_sampled_record(ptr, requested_size(size, alignment, &start), weight, &start);
  return ptr;
}

HP_NOINLINE void *hp_sampled_valloc(size_t size, void *(*real)(size_t)) {
  struct hp_frame_start start = HP_FRAME_START();
  float weight = hp_sampled_decide(size);
  void *ptr = real(size);
  if (weight != 0) hp_sampled_record(ptr, size, weight, &start);
  return ptr;
}
