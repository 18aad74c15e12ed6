/* SPDX-License-Identifier: MIT
 * exit_files_are_mine.c - claim: a process whose other threads close and open every descriptor number while main returns leaves
 * its last profile all the same, and none of its files holds a byte that is not its own. CHILDREN processes, one after the
 * other; each opens its files anew all the time and is ended in the middle of it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 40, LAST = 40, FILES = 30, CHUNK = 64, BLOCKS = 20000 };

static const char *path;
static void *volatile kept[BLOCKS];

static void *open_and_write(void *unused) {
  char mine[CHUNK];
  memset(mine, 'M', sizeof mine);
  for (;;) {
    for (int i = 3; i < LAST; i++) close(i);
    for (int i = 0; i < FILES; i++) {
      int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC, 0600);
      if (file < 0 || write(file, mine, sizeof mine) != sizeof mine) _exit(3);
    }
  }
  return unused;
}

static bool is_all_mine(void) { /* or empty, or not there yet */
  static char bytes[1 << 16];
  int file = open(path, O_RDONLY | O_CREAT, 0600);
  ssize_t n;
  while ((n = read(file, bytes, sizeof bytes)) > 0) {
    for (ssize_t i = 0; i < n; i++) {
      if (bytes[i] == 'M') continue;
      fprintf(stderr, "byte %zd of %zd is 0x%02x\n", i, n, (unsigned char)bytes[i]);
      return false;
    }
  }
  close(file);
  return n == 0;
}

int main(void) {
  static char name[4200];
  const char *work = getenv("HEAPPROF_WORK");
  if (work == NULL) return 1;
  snprintf(name, sizeof name, "%s/mine", work);
  path = name;
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    if (child == 0) {
      pthread_t thread;
      for (int j = 0; j < BLOCKS; j++) kept[j] = malloc(1 + (size_t)j % 500);
      if (pthread_create(&thread, NULL, open_and_write, NULL) != 0) _exit(2);
      usleep(2000);
      exit(5);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5) return 2;
    if (!is_all_mine()) return 4;
  }
  return 0;
}
