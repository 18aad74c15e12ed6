/* SPDX-License-Identifier: MIT
 * filter_hook.c - prctl: a thread puts itself under a seccomp filter, which may kill for what the profiler calls. Other options
 * are a comparison and a tail call. Not heard of: filters that come by syscall(SYS_seccomp), libseccomp's. */
#include "filter_hook.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>

#include "next_malloc.h"

bool (*hp_hook_before_filter)(const struct sock_fprog *filter);
void (*hp_hook_filtered)(void);

/* sys/prctl.h, which declares it with an ellipsis, is not included: the callers' registers are the same. */
HP_EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

static HP_COLD __attribute__((noinline)) int filter(unsigned long mode, unsigned long program, unsigned long c,
                                                    unsigned long d) {
  bool is_for_us = (mode == SECCOMP_MODE_STRICT || (mode == SECCOMP_MODE_FILTER && program != 0)) &&
                   hp_hook_before_filter != NULL &&
                   hp_hook_before_filter(mode == SECCOMP_MODE_STRICT ? NULL : (const struct sock_fprog *)program);
  int result = hp_next.prctl(PR_SET_SECCOMP, mode, program, c, d);
  if (result == 0 && is_for_us) hp_hook_filtered();
  return result;
}

int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  return option == PR_SET_SECCOMP ? filter(a, b, c, d) : hp_next.prctl(option, a, b, c, d);
}
