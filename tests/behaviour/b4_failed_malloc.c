/* SPDX-License-Identifier: MIT
 * B4: an allocation that fails leaves no record, and its errno is the allocator's. */
#include <malloc.h>

#include "behaviour.h"

int main(void) {
  const volatile size_t huge = SIZE_MAX / 2;
  struct heapprof_stats before = stats_now();
  for (int which = 0; which < 6; which++) {
    void *volatile p = NULL;
    int result = 0;
    errno = 0;
    heapprof_test_force_sample();
    switch (which) {
      case 0: p = malloc(huge); break;
      case 1: p = calloc(huge, 1); break;
      case 2: p = realloc(NULL, huge); break;
      case 3: p = aligned_alloc(64, huge); break;
      case 4: p = memalign(64, huge); break;
      default: result = posix_memalign((void **)&p, 64, huge); break;
    }
    CHECK(p == NULL, "%d", which);
    CHECK(which == 5 ? result == ENOMEM : errno == ENOMEM, "%d: errno %d, result %d", which, errno, result);
  }
  struct heapprof_stats after = stats_now();
  CHECK_EQUAL(after.live_samples, before.live_samples);
  CHECK_EQUAL(after.samples, before.samples);
  CHECK_EQUAL(after.alloc_bytes_estimate, before.alloc_bytes_estimate);
  errno = EXDEV; /* and one that succeeds leaves it alone */
  heapprof_test_force_sample();
  void *volatile p = malloc(10);
  CHECK_EQUAL(errno, EXDEV);
  free(p);
  CHECK_EQUAL(errno, EXDEV);
  CHECK_EQUAL(stats_now().samples, before.samples + 1);
  return 0;
}
