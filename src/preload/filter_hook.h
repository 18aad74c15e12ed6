/* SPDX-License-Identifier: MIT
 * filter_hook.h - what control sets to hear of a seccomp filter before the program puts itself under it. */
#ifndef HP_FILTER_HOOK_H
#define HP_FILTER_HOOK_H

#include "compiler.h"

struct sock_fprog;

/* The calling thread is about to be under this filter (NULL: in strict mode). True: hp_hook_filtered is to be called when it is. */
extern bool (*hp_hook_before_filter)(const struct sock_fprog *filter);
extern void (*hp_hook_filtered)(void);

#endif
