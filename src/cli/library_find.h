/* SPDX-License-Identifier: MIT
 * library_find.h - where libheapprof.so is.
 */
#ifndef HP_LIBRARY_FIND_H
#define HP_LIBRARY_FIND_H

#include "cli_error.h"

/* The absolute path: `given` if not null, else beside the running command (as installed, or in the build tree), else where it
 * would be installed. The caller frees it. Null and a sentence with the places looked at if there is none. */
char *hp_library_find(const char *given, struct hp_error *error);

#endif
