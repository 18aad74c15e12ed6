/* SPDX-License-Identifier: MIT
 * code_bytes.h - looks at the instructions around an address, when they can be read. Async-signal-safe; a system call or
 * two the first time, then the answer is remembered. So an address of generated code that has become other code may pass for
 * what it was: the frame is told wrong, but nothing is read that is not there. */
#ifndef HP_CODE_BYTES_H
#define HP_CODE_BYTES_H

#include "arch.h"
#include "compiler.h"

/* Does a call instruction end at pc? */
bool hp_code_is_after_call(uintptr_t pc);
/* Is pc the start of the code that returns from a signal handler? */
bool hp_code_is_restorer(uintptr_t pc);

#endif
