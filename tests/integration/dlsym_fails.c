/* SPDX-License-Identifier: MIT
 * dlsym_fails.c - preloaded before the library: the DLSYM_FAILS-th look-up of a symbol by dlsym finds nothing. Each other look-up is
 * a jump to the real one, which sees who asks by the return address: hence compiled with sibling calls. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "../support/dlsym_version.h"

typedef void *look_up(void *, const char *);

static unsigned long calls;
static look_up *real;

void *dlsym(void *handle, const char *name) {
  static unsigned long failing;
  if (real == NULL) {
    const char *number = getenv("DLSYM_FAILS");
    failing = number == NULL ? 0 : strtoul(number, NULL, 10);
    real = (look_up *)dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
    if (real == NULL) abort();
  }
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == failing) return NULL;
  return real(handle, name);
}
