/* SPDX-License-Identifier: MIT
 * unit_test.h - CMocka, after the headers it wants before itself. */
#ifndef HP_UNIT_TEST_H
#define HP_UNIT_TEST_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

/* qemu-user (aarch64 is tried there) keeps to no RLIMIT_AS: to be called while one of 1 MiB should hold, before the test relies on
 * it. Puts back the one before and skips the test if it does not hold. */
struct rlimit;
#if defined(__aarch64__)
#include <sys/mman.h>
#include <sys/resource.h>
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

#endif
