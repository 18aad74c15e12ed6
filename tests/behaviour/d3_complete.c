/* SPDX-License-Identifier: MIT
 * D3: everything that returned before the request is in the dump. Rate 1: exactly. */
#include "behaviour.h"

enum { THREADS = 4, EACH = 25 };
static void *blocks[THREADS][EACH];

NOINLINE static void *counted_site(void) {
  void *volatile p = malloc(40);
  return p;
}

static void *body(void *argument) {
  intptr_t t = (intptr_t)argument;
  for (int i = 0; i < EACH; i++) blocks[t][i] = counted_site();
  free(blocks[t][0]);
  return NULL;
}

int main(int argc, char **argv) {
  (void)argc;
  long rounds = scaled(100, 1000);
  pthread_t threads[THREADS];
  for (long round = 0; round < rounds; round++) {
    run_threads(threads, THREADS, body);
    join_threads(threads, THREADS);
    char name[32];
    snprintf(name, sizeof name, "round-%ld", round);
    CHECK_EQUAL(dump_to(argv[1], name), 0);
    for (int t = 0; t < THREADS; t++) {
      for (int i = 1; i < EACH; i++) free(blocks[t][i]);
    }
  }
  return 0;
}
