/* SPDX-License-Identifier: MIT
 * call_filter.h - would a seccomp filter kill for a system call of a dump? */
#ifndef HP_CALL_FILTER_H
#define HP_CALL_FILTER_H

#include "compiler.h"

struct sock_fprog;

/* Runs the filter, in memory, for each call that a dump makes, with arguments of 0. A filter that is none kills nobody: the kernel
 * refuses it. Nothing else is changed; async-signal-safe. */
bool hp_call_filter_kills(const struct sock_fprog *filter);

/* Hears of filters that the program puts itself under (preload/filter_hook.h). With one that kills the process is inert from then on:
 * no sample, no dump, one line. At start-up. */
void hp_call_filter_start(void);

#endif
