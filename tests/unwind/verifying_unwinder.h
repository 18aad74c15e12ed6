/* SPDX-License-Identifier: MIT
 * verifying_unwinder.h - counters of verifying_unwinder.c (atomic). */
#ifndef HP_VERIFYING_UNWINDER_H
#define HP_VERIFYING_UNWINDER_H

#include "compiler.h"

enum { HP_VERIFIED_FRAMES_MAX = 140 }; /* longer walks are done once: the second opinion lies on the stack */

extern uint64_t hp_verified_walks;
extern uint64_t hp_verified_differences;
extern uint64_t hp_verified_memos; /* walks that found what an earlier one of the same stack had noted */

#endif
