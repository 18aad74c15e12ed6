/* SPDX-License-Identifier: MIT
 * heap.c - see heap.h. jemalloc's archive is linked in with every name of its own prefixed hpje_ and its calls of the C library
 * taken over by heap_os.c. */
#include "heap.h"

#include "budget.h"
#include "fork_mark.h"
#include "heap_os.h"
#include "lock.h"
#include "moment.h"
#include "stack_switch.h"

void *hpje_malloc(size_t size);
void *hpje_aligned_alloc(size_t alignment, size_t size);
void hpje_free(void *ptr);
size_t hpje_malloc_usable_size(const void *ptr);
int hpje_mallctl(const char *name, void *old, size_t *old_size, void *new_value, size_t new_size);
void hpje_je_jemalloc_prefork(void);
void hpje_je_jemalloc_postfork_parent(void);
void hpje_je_jemalloc_postfork_child(void);

/* One arena, no per-thread cache (a table grows by whole chunks, seldom); freed pages go back when a table that shrank says
 * so (hp_heap_trim), not at every free. */
extern const char *hpje_malloc_conf;
const char *hpje_malloc_conf =
    "narenas:1,tcache:false,background_thread:false,dirty_decay_ms:-1,muzzy_decay_ms:0,dss:disabled,thp:never";

static bool is_used; /* atomic: jemalloc has been initialised, so it has to be told of a fork */
struct hp_lock hp_heap_start_lock;

bool hp_heap_is_started(void) { return hp_load_relaxed(&is_used); }

/* Where the system has no memory a try costs jemalloc dozens of system calls, and at rate 1 every allocation of the program would pay
 * for one. After so many refusals in a row there is one try in so much time. */
enum { PATIENCE = 16, RETRY_NANOS = 16000000 };
static unsigned refusals_in_a_row; /* atomic, PATIENCE at most */
static int64_t next_try_nanos;     /* atomic, of CLOCK_MONOTONIC_COARSE */

static HP_COLD void note_refusal(void) {
  unsigned before = hp_load_relaxed(&refusals_in_a_row);
  if (before < PATIENCE) hp_store_relaxed(&refusals_in_a_row, before + 1);
  hp_store_relaxed(&next_try_nanos, hp_clock_nanos(CLOCK_MONOTONIC_COARSE) + RETRY_NANOS);
}

/* A clock that the program sets back does not put the next try off. */
static bool is_waiting(void) {
  if (HP_LIKELY(hp_load_relaxed(&refusals_in_a_row) < PATIENCE)) return false;
  int64_t wait = hp_load_relaxed(&next_try_nanos) - hp_clock_nanos(CLOCK_MONOTONIC_COARSE);
  return wait > 0 && wait <= RETRY_NANOS;
}

/* The budget is asked for `size` and then charged what jemalloc really gave. */
static void *charge(void *ptr, size_t size) {
  if (ptr == NULL) {
    hp_memory_release(size);
    note_refusal();
    return NULL;
  }
  if (HP_UNLIKELY(hp_load_relaxed(&refusals_in_a_row) != 0)) hp_store_relaxed(&refusals_in_a_row, 0);
  hp_memory_add(hpje_malloc_usable_size(ptr) - size);
  return ptr;
}

/* jemalloc's own mutexes count as locks of ours (thread_state.h). */
static void *allocate(size_t alignment, size_t size) {
  hp_thread_lock_begin();
  void *ptr = charge(alignment == 0 ? hpje_malloc(size) : hpje_aligned_alloc(alignment, size), size);
  hp_thread_lock_end();
  return ptr;
}

static void initialise(void *out_is_done) {
  void *block = hpje_malloc(1);
  *(bool *)out_is_done = block != NULL;
  hpje_free(block);
}

/* jemalloc's start takes 6 KiB of stack, more than a thread of the smallest size may have left. False: the system had no memory;
 * jemalloc is to be left alone until a start has succeeded, and is started anew at the next call. */
static HP_COLD bool first_use(void) {
  hp_lock_acquire(&hp_heap_start_lock);
  bool is_done = hp_load_relaxed(&is_used);
  char *top = is_done ? NULL : hp_stack_map();
  if (top != NULL) {
    hp_stack_call(top, initialise, &is_done);
    hp_stack_unmap(top);
    if (is_done) hp_memory_mark();
    hp_store_release(&is_used, is_done);
  }
  hp_lock_release(&hp_heap_start_lock);
  return is_done;
}

/* May jemalloc be asked for `size` bytes, which are then taken from the budget? Not between the fork handlers: this thread holds its
 * mutexes itself then. */
static bool begin(size_t size) {
  if (hp_thread.holds_all_locks != 0 || is_waiting() || hp_memory_is_full(HP_MEMORY_TABLES) || !hp_memory_reserve(size))
    return false;
  if (HP_LIKELY(hp_load_acquire(&is_used)) || first_use()) return true;
  hp_memory_release(size);
  note_refusal();
  return false;
}

void *hp_heap_alloc(size_t size) { return begin(size) ? allocate(0, size) : NULL; }

void *hp_heap_alloc_aligned_zero(size_t alignment, size_t size) {
  if (!begin(size)) return NULL;
  void *ptr = allocate(alignment, size);
  if (ptr != NULL) __builtin_memset(ptr, 0, size);
  return ptr;
}

void hp_heap_free(void *ptr) {
  if (ptr == NULL) return;
  hp_thread_lock_begin();
  hp_memory_release(hpje_malloc_usable_size(ptr));
  hpje_free(ptr);
  hp_thread_lock_end();
}

void hp_heap_trim(void) {
  if (!hp_load_relaxed(&is_used)) return;
  hp_thread_lock_begin();
  hpje_mallctl("arena.0.purge", NULL, NULL, NULL, 0);
  hp_thread_lock_end();
}

/* ---- fork ---- */
void hp_heap_lock_all(void) {
  hp_lock_acquire(&hp_heap_start_lock);
  if (hp_load_relaxed(&is_used)) hpje_je_jemalloc_prefork();
}
/* The lock of the first use goes last: another thread's jemalloc must not be told of the end of a fork whose beginning it never saw. */
void hp_heap_unlock_all_parent(void) {
  if (hp_load_relaxed(&is_used)) hpje_je_jemalloc_postfork_parent();
  hp_lock_release(&hp_heap_start_lock);
}
void hp_heap_unlock_all_child(void) {
  if (hp_load_relaxed(&is_used)) hpje_je_jemalloc_postfork_child();
  hp_lock_release(&hp_heap_start_lock);
}
