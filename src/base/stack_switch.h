/* SPDX-License-Identifier: MIT
 * stack_switch.h - run a function on a stack of our own: we are called on what little a coroutine, a signal stack or the
 * smallest thread has left. Async-signal-safe. */
#ifndef HP_STACK_SWITCH_H
#define HP_STACK_SWITCH_H

/* Map a stack of 128 KiB; its top, or NULL. Only touched pages cost memory. */
char *hp_stack_map(void);
/* top: from hp_stack_map(), or NULL. Not on that stack. */
void hp_stack_unmap(char *top);

/* Call function(argument) on the stack with this top, which nobody else uses meanwhile; on the current one if top is NULL
 * (and under address or thread sanitizer, which keep shadow stacks of their own). */
void hp_stack_call(char *top, void (*function)(void *), void *argument);

#endif
