/* SPDX-License-Identifier: MIT
 * figures.c - 20 MiB in 1000 blocks, and a dump by the program, after which it still has them. For figures.py. */
#include <stdlib.h>
#include <string.h>

extern int heapprof_dump(const char *) __attribute__((weak));

int main(void) {
  enum { BLOCKS = 1000, BYTES = 20 * 1024 * 1024 / BLOCKS };
  static char *blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(BYTES);
    if (blocks[i] == NULL) return 1;
    memset(blocks[i], i, BYTES);
  }
  if (heapprof_dump == NULL || heapprof_dump(NULL) != 0) return 2;
  return blocks[1][0] == 1 ? 0 : 3;
}
