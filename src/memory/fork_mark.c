/* SPDX-License-Identifier: MIT
 * fork_mark.c - see fork_mark.h. */
#include "fork_mark.h"

#include <sys/mman.h>

#include "sys.h"

static uint32_t *own_mark; /* atomic; in a page that the kernel zeroes in a forked child; NULL: none could be had */

void hp_memory_mark(void) {
  enum { MARK_BYTES = 4096, WIPE_ON_FORK = 18 /* MADV_WIPEONFORK */ };
  uint32_t *mark = hp_sys_mmap(NULL, MARK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (hp_sys_failed(mark)) return;
  if (hp_sys_madvise(mark, MARK_BYTES, WIPE_ON_FORK) != 0) {
    hp_sys_munmap(mark, MARK_BYTES);
    return;
  }
  *mark = 1;
  hp_store_release(&own_mark, mark);
}

bool hp_memory_is_copy(void) {
  const uint32_t *mark = hp_load_acquire(&own_mark);
  return mark != NULL && hp_load_relaxed(mark) == 0;
}

void hp_memory_claim(void) {
  uint32_t *mark = hp_load_acquire(&own_mark);
  if (mark != NULL) hp_store_relaxed(mark, 1);
}
