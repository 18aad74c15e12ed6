/* SPDX-License-Identifier: MIT
 * B6: no big frame on the way: at rate 1 on a thread of the smallest stack there is, and in a handler on a signal stack. (No VLA
 * and no frame above 2 KiB: the compiler, -Wvla -Wframe-larger-than=2048, src/preload/CMakeLists.txt.) */
#include <limits.h>

#include "behaviour.h"

enum { SIGNAL_STACK = 16384 };
static volatile sig_atomic_t handled;
static void *in_handler;

static void *on_small_stack(void *argument) {
  for (int i = 0; i < 100; i++) free(realloc(malloc(10), 1000));
  return argument;
}

static void handler(int number) {
  in_handler = malloc(123); /* the program's own daring; it interrupts no allocation here */
  handled = number;
}

int main(int argc, char **argv) {
  (void)argc;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  CHECK_EQUAL(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN), 0);
  for (int i = 0; i < 20; i++) {
    CHECK_EQUAL(pthread_create(&thread, &attributes, on_small_stack, NULL), 0);
    pthread_join(thread, NULL);
  }
  static char stack[SIGNAL_STACK];
  stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  CHECK_EQUAL(sigaltstack(&alternative, NULL), 0);
  CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
  raise(SIGUSR1);
  CHECK_EQUAL(handled, SIGUSR1);
  CHECK_EQUAL(dump_to(argv[1], "small"), 0);
  free(in_handler);
  return 0;
}
