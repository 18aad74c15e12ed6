/* SPDX-License-Identifier: MIT
 * test_unwind_signed.c - aarch64 only: stacks whose return addresses are signed, as in programs built with -mbranch-protection
 * (Ubuntu's and Fedora's are), against libgcc's unwinder; many a libunwind falls over them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <unwind.h>

#include <cmocka.h>

#include "frame_shapes.h"
#include "rng.h"
#include "unwinder.h"

enum { PATH_MAX_LENGTH = 40, PATHS = 1000, FRAMES_MAX = 256, HAS_SIGNATURES = 1 << 30 }; /* HWCAP_PACA */

struct frames {
  size_t count;
  uintptr_t pcs[FRAMES_MAX];
};

static size_t walks, signed_slots;

long path_next(struct path *path, long value) {
  if (path->at == path->length) {
    path->leaf();
    return value;
  }
  long result = path->shapes[path->at++](path, value);
  __asm__ volatile(""); /* no tail call */
  return result;
}

static HP_NOINLINE void walk_ours(struct frames *out, unsigned *out_flags) {
  struct hp_frame_start start = HP_FRAME_START();
  out->count = hp_unwind(&start, out->pcs, FRAMES_MAX, out_flags);
  __asm__ volatile("");
}

static _Unwind_Reason_Code note_theirs(struct _Unwind_Context *context, void *frames) {
  struct frames *out = frames;
  uintptr_t pc = _Unwind_GetIP(context);
  if (pc == 0 || out->count == FRAMES_MAX) return _URC_END_OF_STACK;
  out->pcs[out->count++] = pc;
  return _URC_NO_REASON;
}

static void check_leaf(void) {
  struct frames ours, theirs = {.count = 0};
  unsigned flags;
  walk_ours(&ours, &flags);
  _Unwind_Backtrace(note_theirs, &theirs);
  assert_int_equal(flags & (HP_UNWIND_INCOMPLETE | HP_UNWIND_TRUNCATED), 0);
  assert_int_equal(ours.count, theirs.count);
  for (size_t i = 1; i < ours.count; i++) assert_int_equal(ours.pcs[i], theirs.pcs[i]); /* 0: two places in this function */
  walks++;
}

/* What stands in this function's frame record is not the address that it returns to: but for a chance in 128 or less, by the
 * process's key and the place on the stack, that the signature has the bits of none. Hence many places. */
enum { RECORDS = 32 };
static __attribute__((noinline, target("branch-protection=pac-ret"))) void look_at_own_records(int more) {
  if (more > 0) look_at_own_records(more - 1);
  __asm__ volatile("" : : : "x30");
  uintptr_t saved = ((const uintptr_t *)__builtin_frame_address(0))[1];
  if (saved != (uintptr_t)__builtin_return_address(0)) signed_slots++;
}

static void test_random_paths_of_signed_frames(void **state) {
  (void)state;
  struct hp_rng rng = {5};
  unsigned sets = 0;
  if ((getauxval(AT_HWCAP) & HAS_SIGNATURES) == 0) skip();
  look_at_own_records(RECORDS - 1);
  assert_in_range(signed_slots, RECORDS / 2, RECORDS);
  while (all_shapes[sets] != NULL) sets++;
  for (int i = 0; i < PATHS; i++) {
    frame_shape shapes[PATH_MAX_LENGTH];
    size_t length = 1 + hp_rng_next(&rng) % PATH_MAX_LENGTH;
    for (size_t at = 0; at < length; at++)
      shapes[at] = all_shapes[hp_rng_next(&rng) % sets][hp_rng_next(&rng) % SHAPE_COUNT];
    struct path path = {.shapes = shapes, .length = length, .at = 0, .leaf = check_leaf};
    path_next(&path, (long)(hp_rng_next(&rng) % 1000));
    if (i % 100 == 99) hp_unwind_flush();
  }
  assert_true(walks >= PATHS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_paths_of_signed_frames)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
