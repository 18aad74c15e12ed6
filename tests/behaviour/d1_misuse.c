/* SPDX-License-Identifier: MIT
 * D1: a dump is begun, carried out and finished in order; everything else is refused with an error, not undefined. */
#include "behaviour.h"

int main(int argc, char **argv) {
  (void)argc;
  char path[4096];
  CHECK(heapprof_test_dump_try_lock(), "nobody dumps");
  CHECK(!heapprof_test_dump_try_lock(), "a second dump was begun inside the first");
  heapprof_test_dump_unlock();
  snprintf(path, sizeof path, "%s/sink.tmp", argv[1]);
  CHECK_EQUAL(heapprof_test_sink_misuse(path), 0);
  struct heapprof_stats small = {.struct_size = 8};
  CHECK_EQUAL(heapprof_stats(&small), -EINVAL);
  CHECK_EQUAL(heapprof_set_sample_rate(((uint64_t)1 << 40) + 1), -EINVAL);
  CHECK_EQUAL(dump_to(argv[1], "nowhere/x"), -ENOENT);
  CHECK_EQUAL(dump_to(argv[1], "good"), 0);
  return 0;
}
