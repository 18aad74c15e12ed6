/* SPDX-License-Identifier: MIT
 * early_blocks.c - claim: blocks that were given out before the real allocator was known live on as any others, and a program whose
 * first call of all is any of the names gets its answer. (surroundings.c makes the calls and checks the blocks.) */
#include <stdlib.h>
#include <string.h>

extern void surroundings_check(void) __attribute__((weak));

int main(void) {
  void *blocks[200];
  if (surroundings_check == NULL) return 1;
  for (size_t i = 0; i < 200; i++) {
    blocks[i] = malloc(10 * i + 1);
    if (blocks[i] == NULL) return 2;
    memset(blocks[i], (int)i, 10 * i + 1);
  }
  if (getenv("LOOKUP_ALLOCATES") != NULL) surroundings_check();
  for (size_t i = 0; i < 200; i++) {
    if (*(unsigned char *)blocks[i] != i) return 3;
    free(blocks[i]);
  }
  return 0;
}
