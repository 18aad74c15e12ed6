/* SPDX-License-Identifier: MIT
 * sanitizer.c - a program built with AddressSanitizer's shared runtime ends at its start when a library is preloaded before
 * that runtime, unless it is told otherwise: the runtime asks this function for its defaults. A definition in the program
 * comes before ours. (No header: only the runtime calls it.) */
#include "compiler.h"

HP_EXPORT const char *__asan_default_options(void);
HP_EXPORT const char *__asan_default_options(void) { return "verify_asan_link_order=0"; }
