/* SPDX-License-Identifier: MIT
 * D1: a dump is begun, carried out and finished in order; everything else is refused with an error, not undefined. */
#include <dlfcn.h>

#include "behaviour.h"

int main(int argc, char **argv) {
  (void)argc;
  char path[4096];
  CHECK(heapprof_test_dump_try_lock(), "nobody dumps");
  CHECK(!heapprof_test_dump_try_lock(), "a second dump was begun inside the first");
  heapprof_test_dump_unlock();
  snprintf(path, sizeof path, "%s/sink.tmp", argv[1]);
  CHECK_EQUAL(heapprof_test_sink_misuse(path), 0);
  union {
    void *object;
    int (*call)(struct heapprof_stats *);
  } stats = {dlsym(RTLD_DEFAULT, "heapprof_stats")};
  struct heapprof_stats unset = {.struct_size = 8};
  CHECK_EQUAL(stats.call(&unset), -EINVAL);
  unset.struct_size = SIZE_MAX / 3;
  CHECK_EQUAL(stats.call(&unset), -EINVAL);
  CHECK_EQUAL(heapprof_stats(&unset), 0); /* the header's knows its own size */
  CHECK_EQUAL(heapprof_set_sample_rate(((uint64_t)1 << 40) + 1), -EINVAL);
  CHECK_EQUAL(dump_to(argv[1], "nowhere/x"), -ENOENT);
  CHECK_EQUAL(dump_to(argv[1], "good"), 0);
  return 0;
}
