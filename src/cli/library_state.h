/* SPDX-License-Identifier: MIT
 * library_state.h - the library's settings, read in the memory of the process that it profiles (base/published.h).
 */
#ifndef HP_LIBRARY_STATE_H
#define HP_LIBRARY_STATE_H

#include <stdbool.h>

struct hp_library_state {
  bool is_known; /* else all below is unset: no such right (another user, ptrace_scope), an older library, profiling off */
  int signal;    /* that asks for a dump; 0: none */
  bool is_signal_lost;
  char *out_template; /* null: unknown */
  char *directory;    /* null: unknown */
};

/* `folder`: /proc/PID; `maps`: the text of its maps. What is found there is not trusted. Free with hp_library_state_free. */
void hp_library_state_read(const char *folder, const char *maps, struct hp_library_state *out);
void hp_library_state_free(struct hp_library_state *state);

#endif
