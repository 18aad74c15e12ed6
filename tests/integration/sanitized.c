/* SPDX-License-Identifier: MIT
 * sanitized.c - one fault of each kind, for sanitizers.sh: what a sanitizer finds in a program it finds under the library too.
 *   sanitized address|leak|thread|undefined|memory */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int one = 1;
static int raced;
static char *volatile lost;

static void *race(void *unused) {
  for (int i = 0; i < 1000; i++) raced++;
  return unused;
}

static int overflow(void) {
  char *block = malloc(10);
  memset(block, 0, 10);
  int read = block[9 + one];
  free(block);
  return read;
}

static void leak(void) {
  for (int i = 0; i < 50; i++) lost = malloc(1000 + (size_t)i);
  lost = NULL;
}

static void race_with_another(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, race, NULL) != 0) exit(2);
  race(NULL);
  pthread_join(thread, NULL);
}

static void branch_on_nothing(void) {
  int *block = malloc(sizeof *block * 4);
  if (block[one] > 5) exit(3);
  free(block);
}

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  if (strcmp(kind, "address") == 0) printf("%d\n", overflow());
  if (strcmp(kind, "leak") == 0) leak();
  if (strcmp(kind, "thread") == 0) race_with_another();
  if (strcmp(kind, "undefined") == 0) printf("%d\n", INT_MAX - 1 + one + one);
  if (strcmp(kind, "memory") == 0) branch_on_nothing();
  return 0;
}
