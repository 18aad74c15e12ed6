/* SPDX-License-Identifier: MIT
 * marked_blocks.c - claim: what lies behind the library is what the program would have reached without it, also where dlsym does not
 * see that one (marking_allocator.c, -DIS_HIDDEN). Ends with 0 if every block carries the allocator's mark and can be given back. */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void want_marked(const void *block) {
  uint64_t is;
  memcpy(&is, (const char *)block - 32, sizeof is);
  if (is != 0x6b6172616d6b7261) abort();
}

int main(void) {
  void *block = malloc(100);
  want_marked(block);
  block = realloc(block, 1000);
  want_marked(block);
  free(block);
  want_marked(block = calloc(10, 10));
  free(block);
  want_marked(block = memalign(64, 100));
  free(block);
  want_marked(block = aligned_alloc(64, 128));
  free(block);
  if (posix_memalign(&block, 64, 100) != 0) abort();
  want_marked(block);
  free(block);
  want_marked(block = strdup("libc's own"));
  free(block);
  return 0;
}
