/* SPDX-License-Identifier: MIT
 * audit.c - an auditor (rtld-audit(7)) that does nothing: with LD_AUDIT the loader puts preloaded libraries' thread-local storage
 * elsewhere (docs/limits.md). */
#include <link.h>

unsigned int la_version(unsigned int version);
unsigned int la_version(unsigned int version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }
