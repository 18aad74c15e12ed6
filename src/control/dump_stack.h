/* SPDX-License-Identifier: MIT
 * dump_stack.h - run a function on a stack of our own: a dump may begin in a signal handler on 16 KiB of sigaltstack or on
 * what little a coroutine has left. Async-signal-safe. */
#ifndef HP_DUMP_STACK_H
#define HP_DUMP_STACK_H

/* Call function(argument) on the dump stack (mapped at the first use and kept; if it cannot be mapped, on the current one).
 * The caller holds the dump lock: there is one such stack. */
void hp_dump_stack_call(void (*function)(void *), void *argument);

#endif
