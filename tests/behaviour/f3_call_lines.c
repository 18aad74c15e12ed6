/* SPDX-License-Identifier: MIT
 * F3: a location is the return address minus one, so that it lies in the call: also when the call is the caller's last
 * instruction, and what follows is another function. */
#include <setjmp.h>

#include "behaviour.h"

static jmp_buf out;
static void *block;

NOINLINE __attribute__((noreturn)) static void never_returns(void) {
  void *volatile p = malloc(51);
  block = p;
  longjmp(out, 1);
}

/* Its call is its last instruction: the return address is the next function's first. */
NOINLINE __attribute__((noreturn, used)) static void last_call(void) { never_returns(); }
NOINLINE __attribute__((used)) static void follows(void) { __asm__ volatile("nop"); }

int main(int argc, char **argv) {
  (void)argc;
  follows();
  if (setjmp(out) == 0) last_call();
  CHECK_EQUAL(dump_to(argv[1], "last"), 0);
  free(block);
  return 0;
}
