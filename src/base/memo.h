/* SPDX-License-Identifier: MIT
 * memo.h - a note that the unwinder keeps beside a thread's remembered stack, for whoever turns stacks into entries: it is
 * emptied when that stack becomes another one, so that what it says of the stack need not be looked up again. */
#ifndef HP_MEMO_H
#define HP_MEMO_H

#include "compiler.h"

struct hp_memo {
  void *value; /* NULL: empty */
  uint64_t key;
};

#endif
