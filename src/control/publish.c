/* SPDX-License-Identifier: MIT
 * publish.c - see publish.h. */
#include "publish.h"

#include "compiler.h"
#include "process.h"

/* With a value from the start, so that it is in the data that the file maps, where the command looks. */
struct hp_published hp_published __attribute__((aligned(HP_PUBLISHED_ALIGNMENT))) = {.magic = HP_PUBLISHED_MAGIC};

void hp_publish(void) {
  hp_published.signal = hp_process.config.signal;
  hp_published.out_template = (uintptr_t)hp_process.config.out_template;
  hp_published.directory = (uintptr_t)hp_process.directory;
  hp_store_release(&hp_published.size_bytes, (uint32_t)sizeof hp_published);
}
