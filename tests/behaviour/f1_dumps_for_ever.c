/* SPDX-License-Identifier: MIT
 * F1: dumps without end, until it is killed. FOLDER */
#include "behaviour.h"

NOINLINE static void *recurse(unsigned path, int n) {
  void *volatile p = n == 0 ? malloc(8) : path & 1 ? recurse(path >> 1, n - 1) : recurse(path >> 1, n - 1);
  return p;
}

int main(int argc, char **argv) {
  (void)argc;
  for (unsigned i = 0; i < 1024; i++) recurse(i, 10);
  for (int i = 0;; i++) {
    char name[32];
    snprintf(name, sizeof name, "dump-%d", i % 5);
    if (dump_to(argv[1], name) != 0) return 1;
  }
}
