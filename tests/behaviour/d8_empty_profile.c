/* SPDX-License-Identifier: MIT
 * D8: a dump before any sample is a valid profile without rows. */
#include "behaviour.h"

int main(int argc, char **argv) {
  (void)argc;
  CHECK_EQUAL(stats_now().samples, 0);
  CHECK_EQUAL(dump_to(argv[1], "empty"), 0);
  return 0;
}
