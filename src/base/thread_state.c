/* SPDX-License-Identifier: MIT
 * thread_state.c - the one definition of thread_state.h. */
#include "thread_state.h"

__thread struct hp_thread_state hp_thread HP_TLS;
