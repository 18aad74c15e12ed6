/* SPDX-License-Identifier: MIT
 * fork_in_unload.h - a child forked while another thread is inside a dlclose, which nobody will end there: its walks are whole,
 * and what they learn is kept. */
#ifndef FORK_IN_UNLOAD_H
#define FORK_IN_UNLOAD_H

void test_a_child_forked_during_an_unload_caches_again(void **state);
void test_a_child_forked_by_the_unloading_thread_ends_it(void **state);

#endif
