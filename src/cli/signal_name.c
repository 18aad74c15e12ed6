/* SPDX-License-Identifier: MIT
 * signal_name.c - see signal_name.h.
 */
#include "signal_name.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

#include "command.h"

int hp_signal_parse(const char *text) {
  int64_t number;
  if (strcasecmp(text, "none") == 0) return 0;
  if (hp_parse_integer(text, 1, SIGRTMAX, &number) == 0) return (int)number;
  if (strncasecmp(text, "SIG", 3) == 0) text += 3;
  if (strcasecmp(text, "RTMIN") == 0) return SIGRTMIN;
  if (strcasecmp(text, "RTMAX") == 0) return SIGRTMAX;
  int span = SIGRTMAX - SIGRTMIN;
  if (strncasecmp(text, "RTMIN+", 6) == 0 && hp_parse_integer(text + 6, 0, span, &number) == 0)
    return SIGRTMIN + (int)number;
  if (strncasecmp(text, "RTMAX-", 6) == 0 && hp_parse_integer(text + 6, 0, span, &number) == 0)
    return SIGRTMAX - (int)number;
  for (int signal = 1; signal < SIGRTMIN; signal++) {
    const char *name = sigabbrev_np(signal);
    if (name != NULL && strcasecmp(name, text) == 0) return signal;
  }
  return -1;
}
