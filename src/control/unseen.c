/* SPDX-License-Identifier: MIT
 * unseen.c - see unseen.h.
 *
 *   anonymous resident  =  heap  +  stacks  +  static data  +  the profiler's own  +  unseen
 *
 * The heap is at most what the allocator took from the system, if it was asked just now, and what was allocated since; and at most
 * what all blocks ever allocated can have touched: their bytes and two pages each. Both hold however fragmented it is.
 *
 * The allocator is asked before the books are read, and much may be freed in between: its figures are compared with the most that
 * can have been in use when it was asked. */
#include "unseen.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "budget.h"
#include "log.h"
#include "mathfn.h"
#include "process.h"
#include "recorder.h"
#include "sampler.h"

enum {
  PAGE_BYTES = 4096,
  FRESH_NANOS = 100 * 1000 * 1000,
  /* A block is handed out before it is in the books, and out of them before it is given back: while somebody is just there with a
   * huge one the figures lie. Three moments like that in a row do not happen. */
  MOMENTS = 3
};
static const uint64_t RESIDENT_MIN = (uint64_t)192 << 20;
static const uint64_t ALLOCATOR_MIN = (uint64_t)64 << 20;
static const uint64_t THREAD_STACK = (uint64_t)8 << 20; /* the usual size; and what an allocator keeps for a thread */
static const uint64_t THREAD_CACHE = (uint64_t)1 << 20; /* blocks that glibc keeps for a thread and counts as in use */
static const uint64_t STACK_CACHE = (uint64_t)40 << 20; /* stacks of ended threads that glibc keeps */
static const double MISSED_RATES = 20, ERRORS = 5;      /* e^-20 that so many bytes made no sample */

static uint64_t above(uint64_t value, double bound) { return (double)value > bound ? (uint64_t)((double)value - bound) : 0; }

static double at_most(double estimate, double error) { return estimate + ERRORS * error; }

static double touched(double bytes, double objects) { return 2 * bytes + 2.0 * PAGE_BYTES * objects; }

static double ever_touched(const struct hp_unseen_facts *f) {
  return touched(at_most(f->alloc_bytes, f->alloc_bytes_error) + MISSED_RATES * (double)f->rate_max_bytes,
                 at_most(f->alloc_objects, f->alloc_objects_error));
}

static bool is_fresh(const struct hp_allocator_figures *a) { return a->has_figures && a->age_nanos <= FRESH_NANOS; }

static void judge_resident(const struct hp_unseen_facts *f, struct hp_unseen *out) {
  double others = (double)f->other_bytes + (double)f->threads.main_stack_bytes;
  if (f->threads.count > 1) others += (double)STACK_CACHE + (double)(f->threads.count - 1) * (double)THREAD_STACK;
  uint64_t least = f->anon_bytes / 4 > RESIDENT_MIN ? f->anon_bytes / 4 : RESIDENT_MIN;
  uint64_t found = f->rate_max_bytes != UINT64_MAX ? above(f->anon_bytes, others + ever_touched(f)) : 0;
  bool is_certain = found >= least;
  if (is_fresh(&f->allocator)) {
    /* What is in use beyond what it handed out was reported by an allocator of the program's: that is seen. */
    double reported = at_most(f->inuse_bytes, f->inuse_bytes_error) - (double)f->allocator.inuse_bytes;
    double heap = (double)f->allocator.system_bytes * 1.0625 + touched(f->grown_bytes, f->grown_objects);
    if (reported > 0) heap += reported;
    found = above(f->anon_bytes, others + heap);
  }
  if (found < least) return;
  out->resident_bytes = found;
  out->is_certain = is_certain;
}

/* glibc only: direct calls go there, and its rounding is known (a header, 16 bytes, at least 32; whole pages for large ones). */
static void judge_allocator(const struct hp_unseen_facts *f, struct hp_unseen *out) {
  const struct hp_allocator_figures *a = &f->allocator;
  if (!is_fresh(a) || strcmp(a->name, "glibc") != 0 || f->rate_max_bytes == UINT64_MAX || !f->is_inuse_whole) return;
  double seen =
      at_most(f->inuse_bytes, f->inuse_bytes_error) * 1.0625 + 48 * at_most(f->inuse_objects, f->inuse_objects_error);
  seen += 4 * MISSED_RATES * (double)f->rate_max_bytes + (double)f->threads.count * (double)THREAD_CACHE;
  uint64_t found = above(a->inuse_bytes, seen);
  if (found >= ALLOCATOR_MIN && found >= a->inuse_bytes / 4) out->allocator_bytes = found;
}

void hp_unseen_judge(const struct hp_unseen_facts *facts, struct hp_unseen *out) {
  *out = (struct hp_unseen){0};
  judge_resident(facts, out);
  judge_allocator(facts, out);
}

/* ---- at a dump ---- */
static struct hp_unseen confirmed;
static struct { unsigned resident, allocator; } in_a_row; /* dumps */
static uint32_t last_number;                              /* of the allocator's figures */
static bool is_said;

/* Writable segments of the program: .data and .bss, of which there may be gigabytes. */
static uint64_t static_data_bytes(void) {
  const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
  unsigned long count = getauxval(AT_PHNUM);
  uint64_t bytes = 0;
  if (headers == NULL || getauxval(AT_PHENT) != sizeof *headers) return 0;
  for (unsigned long i = 0; i < count; i++) {
    if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_W) != 0) bytes += headers[i].p_memsz;
  }
  return bytes;
}

static double error_of(double variance) { return hp_math_sqrt(variance); }

static double more_of(double a, double b) { return a > b ? a : b; }

/* In use at most, when the allocator answered: what was when it was about to be asked, and all that was allocated since. */
static void reach_back(struct hp_unseen_facts *f) {
  const struct hp_stack_totals *then = &f->allocator.totals;
  const struct hp_live_moments *then_moments = &f->allocator.moments;
  struct hp_stack_totals now;
  struct hp_live_moments moments;
  hp_stack_table_totals(&now);
  hp_live_table_moments(&moments);
  f->grown_objects = now.alloc_objects - then->alloc_objects;
  f->grown_bytes = now.alloc_bytes - then->alloc_bytes;
  f->inuse_objects = more_of(f->inuse_objects, then->inuse_objects + f->grown_objects);
  f->inuse_bytes = more_of(f->inuse_bytes, then->inuse_bytes + f->grown_bytes);
  double objects =
      moments.alloc_objects_variance - then_moments->alloc_objects_variance + then_moments->inuse_objects_variance;
  double bytes = moments.alloc_bytes_variance - then_moments->alloc_bytes_variance + then_moments->inuse_bytes_variance;
  f->inuse_objects_error = more_of(f->inuse_objects_error, error_of(objects));
  f->inuse_bytes_error = more_of(f->inuse_bytes_error, error_of(bytes));
}

static struct hp_unseen_facts facts_of(const struct hp_reading *reading, const struct hp_resident *resident) {
  struct hp_live_moments m;
  hp_live_table_moments(&m);
  struct hp_unseen_facts f = {
      .anon_bytes = resident->anon_bytes,
      .other_bytes = hp_memory_used() + static_data_bytes(),
      .rate_max_bytes = hp_sampler_rate_max(),
      .is_inuse_whole = hp_load_relaxed(&hp_recorder_losses.live_table_full) == 0,
      .alloc_objects = (double)reading->totals[HP_ALLOC_OBJECTS],
      .alloc_bytes = (double)reading->totals[HP_ALLOC_BYTES],
      .inuse_objects = (double)reading->totals[HP_INUSE_OBJECTS],
      .inuse_bytes = (double)reading->totals[HP_INUSE_BYTES],
      .alloc_objects_error = error_of(m.alloc_objects_variance),
      .alloc_bytes_error = error_of(m.alloc_bytes_variance),
      .inuse_objects_error = error_of(m.inuse_objects_variance),
      .inuse_bytes_error = error_of(m.inuse_bytes_variance),
  };
  hp_allocator_figures_get(&f.allocator);
  return f;
}

static void say(const struct hp_unseen *found) {
  const unsigned megabyte = 20;
  if (is_said) return;
  is_said = true;
  if (found->resident_bytes != 0) {
    hp_log(HP_LOG_WARN,
           "at least %llu MiB of %s's memory came by no function that heapprof intercepts (mmap, an allocator of its own); "
           "the profiles do not show it",
           (unsigned long long)found->resident_bytes >> megabyte, hp_process_executable_name());
  } else {
    hp_log(HP_LOG_WARN,
           "at least %llu MiB of %s's memory came from the C library's malloc past heapprof (__libc_malloc, RTLD_DEEPBIND); "
           "the profiles do not show it",
           (unsigned long long)found->allocator_bytes >> megabyte, hp_process_executable_name());
  }
}

/* A dump whose figures are old, made in a signal handler, says nothing against; one with the figures of the last, nothing for. */
static void count_in_a_row(unsigned *count, uint64_t found, bool is_known, bool is_news) {
  if (found != 0) {
    *count += is_news ? 1 : 0;
  } else if (is_known) {
    *count = 0;
  }
}

void hp_unseen_look(const struct hp_reading *reading, const struct hp_resident *resident) {
  struct hp_unseen found = {0};
  confirmed = (struct hp_unseen){0};
  if (resident == NULL || resident->anon_bytes < ALLOCATOR_MIN) return;
  struct hp_unseen_facts facts = facts_of(reading, resident);
  hp_unseen_judge(&facts, &found);
  if (found.resident_bytes != 0 || found.allocator_bytes != 0) {
    if (!hp_resident_read_threads(&facts.threads)) return;
    if (facts.allocator.has_figures) reach_back(&facts);
    hp_unseen_judge(&facts, &found);
  }
  bool is_known = is_fresh(&facts.allocator), is_news = facts.allocator.number != last_number;
  last_number = facts.allocator.number;
  count_in_a_row(&in_a_row.resident, found.resident_bytes, is_known, is_news);
  count_in_a_row(&in_a_row.allocator, found.allocator_bytes, is_known, is_news);
  if (found.is_certain || in_a_row.resident >= MOMENTS) confirmed.resident_bytes = found.resident_bytes;
  if (in_a_row.allocator >= MOMENTS) confirmed.allocator_bytes = found.allocator_bytes;
  if (confirmed.resident_bytes != 0 || confirmed.allocator_bytes != 0) say(&confirmed);
}

struct hp_unseen hp_unseen_found(void) {
  return confirmed;
}

void hp_unseen_after_fork(void) { in_a_row.resident = in_a_row.allocator = 0; }
