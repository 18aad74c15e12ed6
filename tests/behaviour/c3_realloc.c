/* SPDX-License-Identifier: MIT
 * C3: realloc takes the record out before the real call, puts it back as it was on failure, and is a free and an allocation of
 * the new size otherwise. */
#include "behaviour.h"

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuse-after-free" /* after a realloc that failed the block is still there */
#endif

static struct heapprof_stats base;

static void expect(const char *what, int64_t live_blocks, int64_t live_bytes, int64_t allocated_blocks,
                   int64_t allocated_bytes) {
  struct heapprof_stats s = stats_now();
  CHECK((int64_t)(s.inuse_objects_estimate - base.inuse_objects_estimate) == live_blocks &&
            (int64_t)(s.inuse_bytes_estimate - base.inuse_bytes_estimate) == live_bytes &&
            (int64_t)(s.alloc_objects_estimate - base.alloc_objects_estimate) == allocated_blocks &&
            (int64_t)(s.alloc_bytes_estimate - base.alloc_bytes_estimate) == allocated_bytes &&
            (int64_t)(s.live_samples - base.live_samples) == live_blocks,
        "%s: live %ld blocks %ld bytes, allocated %ld blocks %ld bytes", what,
        (long)(s.inuse_objects_estimate - base.inuse_objects_estimate),
        (long)(s.inuse_bytes_estimate - base.inuse_bytes_estimate),
        (long)(s.alloc_objects_estimate - base.alloc_objects_estimate),
        (long)(s.alloc_bytes_estimate - base.alloc_bytes_estimate));
}

NOINLINE static void *first_site(size_t n) {
  void *volatile p = malloc(n);
  return p;
}
NOINLINE static void *second_site(void *old, size_t n) {
  void *volatile p = realloc(old, n);
  return p;
}

int main(int argc, char **argv) {
  (void)argc;
  const volatile size_t huge = SIZE_MAX / 2; /* volatile: the compiler need not know */
  free(first_site(1));
  base = stats_now();
  char *p = second_site(NULL, 100); /* realloc(NULL) is malloc */
  expect("realloc of null", 1, 100, 1, 100);
  char *same = second_site(p, 90);
  expect("shrunk", 1, 90, 2, 190);
  char *wall = first_site(100);
  expect("another", 2, 190, 3, 290);
  char *moved = second_site(same, 100000);
  CHECK(moved != same, "the block was to move");
  expect("moved", 2, 100100, 4, 100290);
  CHECK_EQUAL(dump_to(argv[1], "moved"), 0); /* the block is realloc's caller's now */

  errno = 0;
  char *volatile failed = realloc(moved, huge);
  CHECK(failed == NULL && errno == ENOMEM, "errno %d", errno);
  expect("failed", 2, 100100, 4, 100290);
  errno = 0;
  failed = reallocarray(moved, huge, 16);
  CHECK(failed == NULL && errno == ENOMEM, "errno %d", errno);
  expect("reallocarray that overflows", 2, 100100, 4, 100290);
  errno = 0;
  failed = calloc(huge, 16);
  CHECK(failed == NULL && errno == ENOMEM, "errno %d", errno);
  expect("calloc that overflows", 2, 100100, 4, 100290);
  free(wall);
  free(moved); /* the record that was put back is found */
  expect("freed", 0, 0, 4, 100290);

  char *q = first_site(64);
  void *volatile gone = realloc(q, 0);
  CHECK(gone == NULL, "glibc frees");
  expect("to nothing", 0, 0, 5, 100354);
  char *array = reallocarray(NULL, 10, 30);
  expect("reallocarray", 1, 300, 6, 100654);
  array = reallocarray(array, 20, 30);
  expect("reallocarray grown", 1, 600, 7, 101254);
  free(array);
  char *zeroes = calloc(7, 9);
  expect("calloc", 1, 63, 8, 101317);
  free(zeroes);
  expect("all freed", 0, 0, 8, 101317);

  /* With the live table full in between, what cannot be put back is not left in use for ever. */
  char *last = first_site(500);
  expect("one more", 1, 500, 9, 101817);
  failed = realloc(last, huge);
  expect("failed again", 1, 500, 9, 101817);
  free(last);
  expect("the end", 0, 0, 9, 101817);
  CHECK_EQUAL(stats_now().missed_frees, 0);
  return 0;
}
