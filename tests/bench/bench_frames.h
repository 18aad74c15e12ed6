/* SPDX-License-Identifier: MIT
 * bench_frames.h - a stack of a wanted depth, of real functions: 256 of them, none inlined, no frame pointers, frames of
 * different size, some with callee-saved registers. Each of the lowest 32 has two call sites for the next, so that a path
 * of bits chooses one of 2^32 distinct stacks which share what is nearer to main.
 */
#ifndef BENCH_FRAMES_H
#define BENCH_FRAMES_H

#include <stdint.h>

enum { BENCH_DEPTH_MAX = 256, BENCH_PATH_BITS = 32 };

struct bench_descent {
  uint64_t path;                                   /* bit n: the call site in the function n levels above the leaf */
  uint64_t (*leaf)(struct bench_descent *descent); /* called with `depth` of our frames above it */
  void *closure;
  void **blocks; /* for leaves that keep what they allocate */
};

/* Descend `depth` frames (1..BENCH_DEPTH_MAX) and call the leaf; returns what it returned, plus the way back. */
uint64_t bench_descend(unsigned depth, struct bench_descent *descent);

#endif
