/* SPDX-License-Identifier: MIT
 * verifying_unwinder.h - counters of verifying_unwinder.c (atomic). */
#ifndef HP_VERIFYING_UNWINDER_H
#define HP_VERIFYING_UNWINDER_H

#include "compiler.h"

extern uint64_t hp_verified_walks;
extern uint64_t hp_verified_differences;

#endif
