/* SPDX-License-Identifier: MIT
 * main_leaves_first.c - claim: after pthread_exit of main the exit handlers run in the program's last thread, with its
 * stack, and not in a thread of the profiler. main_leaves_first alone    the main thread is the last one main_leaves_first
 * other    another thread is */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pid_t last_thread;
static pthread_t main_thread;

static bool use_stack(void) {
  volatile char big[512 * 1024];
  for (size_t i = 0; i < sizeof big; i += 512) big[i] = (char)i;
  return big[1024] == 0;
}

static void at_end(void) {
  if (!use_stack() || gettid() != last_thread) _exit(7);
}

static void *allocate(void *is_last) {
  for (int i = 0; i < 2000; i++) free(malloc(100));
  if (is_last != NULL) {
    if (pthread_join(main_thread, NULL) != 0) _exit(2); /* it has left */
    last_thread = gettid();
  }
  return NULL;
}

int main(int argc, char **argv) {
  static int tag;
  pthread_t thread;
  bool alone = argc < 2 || strcmp(argv[1], "alone") == 0;
  atexit(at_end);
  last_thread = getpid();
  main_thread = pthread_self();
  if (pthread_create(&thread, NULL, allocate, alone ? NULL : &tag) != 0) return 1;
  if (alone) pthread_join(thread, NULL);
  pthread_exit(NULL);
}
