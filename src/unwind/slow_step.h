/* SPDX-License-Identifier: MIT
 * slow_step.h - one frame up with every general register followed: for rows whose CFA hangs on a register other than sp and
 * fp, or on a general expression.
 *
 * Why not libunwind: its unw_step was the plan (linked in under private names), and this file did the same in less than 150 lines
 * on top of what cfi.c has read anyway, while libunwind would bring 45 KB of code, 43 KB of static data, a lock around it, its
 * own sigprocmask, mmap and open calls to be taken over one by one, and more stack than a small thread has.
 * tests/unwind compares the two.
 *
 * Callers     unwinder. Any thread, async-signal-safe, no memory, stack below 1.5 KiB. Reads stack through stack_bounds. */
#ifndef HP_SLOW_STEP_H
#define HP_SLOW_STEP_H

#include "cfi.h"
#include "cfi_expression.h"
#include "stack_bounds.h"

/* From the frame in `registers` (pc, and the registers known in it) to its caller's. `address`: what its row is looked up by
 * (pc - 1 behind a call). False: it cannot be done; registers are then undefined. */
bool hp_slow_step(const struct hp_cfi_tables *tables, uintptr_t address, struct hp_registers *registers,
                  struct hp_stack_range *range, bool *out_was_signal_frame);

#endif
