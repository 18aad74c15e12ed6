/* SPDX-License-Identifier: MIT
 * sanitized.c - one fault of each kind, for sanitizers.sh: what a sanitizer finds in a program it finds under the library too.
 *   sanitized address|leak|thread|undefined|memory */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int one = 1;
static int raced;
static atomic_int turn;
static char *volatile lost;

/* The two writes come one after the other, since two at the same instant can hide each other from ThreadSanitizer; but nothing orders
 * them: what says that the first is done is relaxed. The first thread is there until the second write is done. */
static void *race(void *unused) {
  raced++;
  atomic_store_explicit(&turn, 1, memory_order_relaxed);
  while (atomic_load_explicit(&turn, memory_order_relaxed) != 2) sched_yield();
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
  while (atomic_load_explicit(&turn, memory_order_relaxed) != 1) sched_yield();
  raced++;
  atomic_store_explicit(&turn, 2, memory_order_relaxed);
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
