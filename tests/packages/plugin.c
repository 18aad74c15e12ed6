/* SPDX-License-Identifier: MIT
 * plugin.c - opened by opener.c: threads in a library that came with libpthread, where the program has none (glibc < 2.34). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 200, THREADS = 4, BLOCKS = 100 };

void *plugin_thread(void *argument);
void *plugin_thread(void *argument) {
  char *blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(1000 + 7 * (size_t)i);
    memset(blocks[i], 1, 10);
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (i % 10 != 0) free(blocks[i]); /* the others are what the profile shows */
  }
  return argument;
}

int plugin(void);
int plugin(void) {
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
      if (pthread_create(&threads[i], NULL, plugin_thread, NULL) != 0) return 1;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  }
  return 0;
}
