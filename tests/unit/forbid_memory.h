/* SPDX-License-Identifier: MIT
 * forbid_memory.h - a limit of the address space under which no mapping succeeds. */
#ifndef HP_FORBID_MEMORY_H
#define HP_FORBID_MEMORY_H

#include <sys/resource.h>

#include "unit_test.h"

#if defined(__aarch64__)
#include <sys/mman.h>
/* qemu-user (aarch64 is tried there) keeps to no RLIMIT_AS: puts back the one before and skips the test if it does not hold. */
static inline void skip_unless_limited(const struct rlimit *before) {
  void *block = mmap(NULL, 2 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return;
  munmap(block, 2 << 20);
  setrlimit(RLIMIT_AS, before);
  skip();
}
#else
static inline void skip_unless_limited(const struct rlimit *before) { (void)before; }
#endif

/* From here on, until the caller sets *out_before again. */
static inline void forbid_memory(struct rlimit *out_before) {
  assert_int_equal(getrlimit(RLIMIT_AS, out_before), 0);
  struct rlimit none = {.rlim_cur = 1 << 20, .rlim_max = out_before->rlim_max};
  assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
  skip_unless_limited(out_before);
}

#endif
