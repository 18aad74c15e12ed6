/* SPDX-License-Identifier: MIT
 * H4: somebody sets the clock while the program runs, out of 1970 and back by a day: what time a file covers stays true, when it was
 * taken is what the clock says. The library asks this program's own clock_gettime. HEAPPROF_KIND=full,delta, HEAPPROF_PEAK=1. FOLDER */
#include <sys/syscall.h>

#include "behaviour.h"

#define DAY ((time_t)86400)
static time_t wall_offset; /* seconds */

int clock_gettime(clockid_t clock, struct timespec *out) {
  int result = (int)syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_REALTIME) out->tv_sec += wall_offset;
  return result;
}

NOINLINE static void *site(size_t n) {
  void *volatile p = malloc(n);
  return p;
}

int main(int argc, char **argv) {
  CHECK(argc > 1, "folder");
  void *block = site(1000000);
  free(site(3000));
  CHECK_EQUAL(dump_to(argv[1], "before"), 0);
  wait_ms(30);
  wall_offset = 20000 * DAY;
  free(site(3000));
  CHECK_EQUAL(dump_to(argv[1], "forward"), 0);
  wait_ms(30);
  wall_offset = -DAY;
  free(block); /* the peak is of now, a day ago */
  CHECK_EQUAL(dump_to(argv[1], "back"), 0);
  wait_ms(30);
  CHECK_EQUAL(dump_to(argv[1], "later"), 0);
  CHECK_EQUAL(heapprof_reset(), 0);
  wall_offset = 0;
  CHECK_EQUAL(dump_to(argv[1], "reset"), 0);
  return 0;
}
