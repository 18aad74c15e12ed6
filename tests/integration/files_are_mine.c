/* SPDX-License-Identifier: MIT
 * files_are_mine.c - claim: a program with threads may close, open and fill any descriptor number at any time, while dumps
 * run one after the other: none of its files ever holds a byte that is not its own, and none of its descriptors is closed.
 *   files_are_mine SECONDS    and longer, until DUMPS dumps were made */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <heapprof.h>

enum { LAST = 40, FILES = 30, CHUNK = 64, DUMPS = 20 };

static volatile bool is_over;

static void *churn(void *unused) {
  static void *kept[512];
  for (unsigned seed = 1; !is_over; seed = seed * 1664525 + 1013904223) {
    free(kept[seed >> 23]);
    kept[seed >> 23] = malloc(1 + (seed >> 8) % 3000);
  }
  return unused;
}

static bool open_and_write(const char *path) {
  static char mine[CHUNK];
  int files[FILES];
  memset(mine, 'M', sizeof mine);
  for (int i = 3; i < LAST; i++) close(i);
  for (int i = 0; i < FILES; i++) files[i] = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
  for (int i = 0; i < FILES; i++) {
    if (files[i] < 0 || write(files[i], mine, sizeof mine) != sizeof mine) return false;
  }
  return true;
}

static bool is_all_mine(const char *path) {
  static char bytes[1 << 16];
  int file = open(path, O_RDONLY);
  ssize_t n;
  while ((n = read(file, bytes, sizeof bytes)) > 0) {
    for (ssize_t i = 0; i < n; i++) {
      if (bytes[i] != 'M') return false;
    }
  }
  close(file);
  return n == 0 && truncate(path, 0) == 0;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool has_dumped(void) {
  struct heapprof_stats stats = {0};
  return heapprof_stats(&stats) == 0 && stats.dumps >= DUMPS;
}

int main(int argc, char **argv) {
  char path[4200];
  pthread_t thread;
  if (argc < 2 || getenv("HEAPPROF_WORK") == NULL) return 1;
  snprintf(path, sizeof path, "%s/mine", getenv("HEAPPROF_WORK"));
  if (pthread_create(&thread, NULL, churn, NULL) != 0) return 2;
  double end = seconds() + atoi(argv[1]);
  while (seconds() < end || !has_dumped()) {
    for (int i = 0; i < 20; i++) {
      if (!open_and_write(path)) return 3;
    }
    kill(getpid(), SIGUSR2);
    if (!is_all_mine(path)) return 4;
  }
  is_over = true;
  pthread_join(thread, NULL);
  return 0;
}
