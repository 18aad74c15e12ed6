/* SPDX-License-Identifier: MIT
 * bench_profiler.h - the heap profiler this process happens to run under: heapprof, jemalloc's, tcmalloc's, or none. Found
 * by symbol, so that one program measures all of them. Also the live set that dumps are measured on.
 */
#ifndef BENCH_PROFILER_H
#define BENCH_PROFILER_H

#include <stddef.h>
#include <stdint.h>

/* Dump into `path` (tcmalloc: $HEAPPROFILE.NNNN.heap, whatever the path). Returns the size of the file in bytes, 0 when
 * there is no profiler or it failed. The file is removed again. */
uint64_t bench_profiler_dump(const char *path);

/* Allocate blocks[0..count) of `size` bytes on `stacks` distinct stacks of `depth` frames, in turn. */
void bench_profiler_allocate(void **blocks, size_t count, size_t size, uint64_t stacks, unsigned depth);

/* The same with each block freed at once: leaves the stacks behind, no live block. */
void bench_profiler_visit_stacks(uint64_t stacks, unsigned depth);

#endif
