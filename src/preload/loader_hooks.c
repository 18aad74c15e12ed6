/* SPDX-License-Identifier: MIT
 * loader_hooks.c - dlclose: what was known of the library's code must be forgotten before other code takes its addresses.
 * (No header: nobody calls this.) */
#include <dlfcn.h>

#include "next_malloc.h"
#include "sampled_path.h"
#include "thread_state.h"
#include "unwinder.h"

HP_EXPORT int dlclose(void *handle) {
  hp_unwind_before_unload();
  int result = hp_next.dlclose(handle);
  hp_section_enter();
  hp_unwind_after_unload();
  hp_sampled_leave_section();
  return result;
}
