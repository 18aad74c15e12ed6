/* SPDX-License-Identifier: MIT
 * static_data.c - a program with 300 MB of static data, all of it touched, and hardly a heap (h2_unseen). FOLDER */
#include "behaviour.h"

static volatile char data[300 * 1000 * 1000];

int main(int argc, char **argv) {
  CHECK(argc > 1, "FOLDER");
  for (size_t i = 0; i < sizeof data; i += 4096) data[i] = 1;
  CHECK_EQUAL(dump_to(argv[1], "one"), 0);
  CHECK_EQUAL(dump_to(argv[1], "two"), 0);
  return 0;
}
