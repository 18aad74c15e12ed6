/* SPDX-License-Identifier: MIT
 * heapprof_testing.h - what libheapprof-testing.so has beyond the library: hooks for the tests (src/control/testing.c).
 * Any thread unless said otherwise; none is for signal handlers. */
#ifndef HEAPPROF_TESTING_H
#define HEAPPROF_TESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAPPROF_TEST_API __attribute__((visibility("default")))

/* Every thread's random numbers from this seed and a counter, from now on. */
HEAPPROF_TEST_API void heapprof_test_seed(uint64_t seed);
/* The calling thread's next allocation is a sample. */
HEAPPROF_TEST_API void heapprof_test_force_sample(void);

/* How often a free or realloc had to look into the live table. */
HEAPPROF_TEST_API uint64_t heapprof_test_takes(void);
HEAPPROF_TEST_API void heapprof_test_force_hash(bool constant);
/* Ceilings of the tables in entries; 0: none but memory. */
HEAPPROF_TEST_API void heapprof_test_limit_live(uint64_t records);
HEAPPROF_TEST_API void heapprof_test_limit_stacks(uint32_t entries);
/* Of the pieces of memory that the profiler asks for from now on the first-th to the last-th are refused; 0, 0: none. Was there a
 * first? */
HEAPPROF_TEST_API void heapprof_test_refuse_memory(uint64_t first, uint64_t last);
HEAPPROF_TEST_API bool heapprof_test_was_refused(void);
/* A sample with a stack and a weight of the test's choice. */
HEAPPROF_TEST_API void heapprof_test_record(uintptr_t address, uint64_t size, float weight, const uintptr_t *pcs,
                                            uint32_t depth);

/* Objects and bytes allocated, objects and bytes in use, not rounded. While nobody allocates. */
HEAPPROF_TEST_API void heapprof_test_sums(double out[4]);

/* While on, each real free looks whether the block's record is still there: late_records counts those. */
HEAPPROF_TEST_API void heapprof_test_check_order(bool on);
HEAPPROF_TEST_API uint64_t heapprof_test_order_checks(void);
HEAPPROF_TEST_API uint64_t heapprof_test_late_records(void);

enum heapprof_test_unwinder {
  HEAPPROF_TEST_UNWINDER_REAL,
  HEAPPROF_TEST_UNWINDER_FAILS,   /* no frame at all */
  HEAPPROF_TEST_UNWINDER_MALLOCS, /* mallocs and frees on the way, by the program's names */
  HEAPPROF_TEST_UNWINDER_SIGNALS, /* raises SIGUSR2 on the way, in the profiler's own section */
};
HEAPPROF_TEST_API void heapprof_test_unwinder(enum heapprof_test_unwinder which);
HEAPPROF_TEST_API uint64_t heapprof_test_unwinder_mallocs(void);

/* Called by each dump between reading the books and writing the file, on the dumping thread; NULL: nothing. */
HEAPPROF_TEST_API void heapprof_test_pause_dump(void (*pause)(void));
HEAPPROF_TEST_API bool heapprof_test_dump_try_lock(void);
HEAPPROF_TEST_API void heapprof_test_dump_unlock(void);
/* The k-th write from now on fails (0: none), or opening, or renaming, with this errno (0: none). */
HEAPPROF_TEST_API void heapprof_test_fail_output(unsigned write_call, int write_errno, int open_errno, int rename_errno);
/* A file finished that was never begun, and one finished twice; 0, or the number of what was not refused. */
HEAPPROF_TEST_API int heapprof_test_sink_misuse(const char *path);

/* What growth is measured by: it says so much at the next look, and after that so much for good. */
HEAPPROF_TEST_API void heapprof_test_inuse(uint64_t first_bytes, uint64_t then_bytes);

/* The clock of periods, ages and whatever waits for a dump. */
HEAPPROF_TEST_API void heapprof_test_advance_clock(int64_t nanos);
/* From now on periods, ages of blocks and ages of the allocator's figures see it stand still, but for what it is advanced: so that
 * nothing depends on how long this process waits for a processor. */
HEAPPROF_TEST_API void heapprof_test_hold_clock(void);
HEAPPROF_TEST_API int64_t heapprof_test_clock(void);
HEAPPROF_TEST_API int64_t heapprof_test_period_check(int64_t now_nanos, bool *out_is_due);

#endif
