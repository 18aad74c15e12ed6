/* SPDX-License-Identifier: MIT
 * signal_name.h - HEAPPROF_SIGNAL as a number.
 */
#ifndef HP_SIGNAL_NAME_H
#define HP_SIGNAL_NAME_H

/* A name with or without SIG, RTMIN+n, RTMAX-n or a number: the signal; "none": 0; anything else: -1. */
int hp_signal_parse(const char *text);

#endif
