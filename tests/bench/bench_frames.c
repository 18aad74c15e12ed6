/* SPDX-License-Identifier: MIT
 * bench_frames.c - the functions of bench_frames.h, made from the list the build writes (bench_frames.inc).
 */
#include "bench_frames.h"

#include "bench_util.h"

static BENCH_NOINLINE uint64_t frame_0(struct bench_descent *descent) { return descent->leaf(descent) + 1; }

/* Stack use varies with the level (0 to 4 words beside the saved registers), as it does in programs. The two calls are kept
 * apart by what follows them: equal tails would be merged into one call site. */
#define FRAME(level, below)                                                     \
  static BENCH_NOINLINE uint64_t frame_##level(struct bench_descent *descent) { \
    volatile uint64_t locals[1 + (level) % 5];                                  \
    uint64_t result;                                                            \
    locals[0] = descent->path;                                                  \
    if ((level) <= BENCH_PATH_BITS && (locals[0] >> ((level)-1) & 1)) {         \
      result = frame_##below(descent) + (level);                                \
      __asm__ volatile("# other call site of " #level : "+r"(result));          \
    } else {                                                                    \
      result = frame_##below(descent) ^ locals[0];                              \
      __asm__ volatile("# call site of " #level : "+r"(result));                \
    }                                                                           \
    return result + locals[0];                                                  \
  }
#include "bench_frames.inc"
#undef FRAME

typedef uint64_t (*frame_function)(struct bench_descent *);
#define FRAME(level, below) frame_##level,
static const frame_function frames[BENCH_DEPTH_MAX] = {
    frame_0,
#include "bench_frames.inc"
};
#undef FRAME

uint64_t bench_descend(unsigned depth, struct bench_descent *descent) {
  if (depth < 1) depth = 1;
  if (depth > BENCH_DEPTH_MAX) depth = BENCH_DEPTH_MAX;
  return frames[depth - 1](descent);
}
