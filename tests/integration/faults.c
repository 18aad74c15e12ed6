/* SPDX-License-Identifier: MIT
 * faults.c - a small program with a known answer for faults.sh: it allocates, asks for dumps, and (with the argument
 * `threads`) does so with a thread and a forked child; with one argument more it calls the other entry
 * points too. It writes one word and asks the system for little by itself. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 300 };

static void do_nothing(int number) { (void)number; }

static bool allocate(void) {
  void *blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc((size_t)(10 + i));
    if (blocks[i] == NULL) return false;
    memset(blocks[i], i, (size_t)(10 + i));
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (*(unsigned char *)blocks[i] != (unsigned char)i) return false;
    free(blocks[i]);
  }
  return true;
}

static void *work(void *unused) { return allocate() ? unused : NULL; }

static bool use_thread_and_child(void) {
  static int tag;
  pthread_t thread;
  void *result = NULL;
  if (pthread_create(&thread, NULL, work, &tag) != 0 || pthread_join(thread, &result) != 0 || result != &tag) return false;
  kill(getpid(), SIGUSR2);
  pid_t child = fork();
  if (child == 0) exit(allocate() ? 5 : 6);
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 5;
}

/* Every entry point that the library looks up by name. */
static bool use_names(void) {
  void *aligned[4] = {NULL, aligned_alloc(64, 128), memalign(64, 100), valloc(100)};
  bool ok = posix_memalign(&aligned[0], 256, 100) == 0;
  for (int i = 0; i < 4; i++) {
    ok = ok && aligned[i] != NULL && (uintptr_t)aligned[i] % 64 == 0 && malloc_usable_size(aligned[i]) >= 100;
    free(aligned[i]);
  }
  void *grown = realloc(calloc(3, 10), 5000);
  ok = ok && grown != NULL && ((char *)grown)[29] == 0;
  free(grown);
  void *library = dlopen("libm.so.6", RTLD_NOW);
  return ok && library != NULL && dlclose(library) == 0;
}

int main(int argc, char **argv) {
  struct sigaction now;
  sigaction(SIGUSR2, NULL, &now);
  if (now.sa_handler == SIG_DFL) signal(SIGUSR2, do_nothing); /* the library was not loaded */
  bool ok = allocate();
  raise(SIGUSR2);
  if (argc > 1 && strcmp(argv[1], "threads") == 0) ok = ok && use_thread_and_child();
  if (argc > 2) ok = use_names() && ok;
  ok = allocate() && ok;
  if (write(1, ok ? "done\n" : "bad\n", ok ? 5 : 4) < 0) return 3;
  return ok ? 0 : 1;
}
