/* SPDX-License-Identifier: MIT
 * E4: what `delta` keeps between dumps is less than 64 bytes a stack, and nothing more with each dump. */
#include "behaviour.h"

int main(int argc, char **argv) {
  (void)argc;
  long n = scaled(20000, 100000);
  for (long i = 0; i < n; i++) {
    uintptr_t pcs[2] = {(uintptr_t)main + 4, (uintptr_t)i + 1};
    heapprof_test_record((uintptr_t)1 << 40 | (uintptr_t)i << 4, 8, 1.0f, pcs, 2);
  }
  uint64_t before = stats_now().metadata_bytes;
  CHECK_EQUAL(dump_to(argv[1], "first"), 0);
  uint64_t once = stats_now().metadata_bytes;
  CHECK_EQUAL(dump_to(argv[1], "second"), 0);
  CHECK_EQUAL(dump_to(argv[1], "third"), 0);
  uint64_t thrice = stats_now().metadata_bytes;
  CHECK(once - before < 64 * (uint64_t)n + 300000, "%lu bytes for %ld stacks", (unsigned long)(once - before), n);
  CHECK_EQUAL(thrice, once);
  return 0;
}
