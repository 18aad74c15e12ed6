/* SPDX-License-Identifier: MIT
 * refused_memory.c - claim: whichever piece of its memory the profiler does not get, the program has its own, every allocation is
 * counted, nothing stays in use that was freed, and the next dump after is whole. With the testing library, which refuses the k-th
 * piece, alone or with all later ones; each k in a child of its own, which begins to sample in it. (HEAPPROF_SAMPLE_RATE=0)
 *   refused_memory PLUGIN    a library to open and close */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heapprof.h"
#include "heapprof_testing.h"

enum { PATH_BITS = 9, BLOCKS = 3 << PATH_BITS, PIECES_MAX = 5000 };

static void *blocks[BLOCKS];
static const char *plugin;

static void *allocate_left(unsigned bits, unsigned depth, size_t size);
static void *allocate_right(unsigned bits, unsigned depth, size_t size);
static void *allocate(unsigned bits, unsigned depth, size_t size) {
  if (depth == 0) return malloc(size);
  void *block = (bits & 1) != 0 ? allocate_left(bits >> 1, depth - 1, size) : allocate_right(bits >> 1, depth - 1, size);
  __asm__ volatile("" : "+r"(block)); /* no tail call */
  return block;
}
static void *allocate_left(unsigned bits, unsigned depth, size_t size) {
  void *block = allocate(bits, depth, size);
  __asm__ volatile("" : "+r"(block));
  return block;
}
static void *allocate_right(unsigned bits, unsigned depth, size_t size) {
  void *block = allocate(bits, depth, size);
  __asm__ volatile("" : "+r"(block));
  return block;
}

static void *work(void *unused) {
  for (size_t i = 1; i < 100; i++) free(memset(malloc(i), 1, i));
  return unused;
}

static struct heapprof_stats now(void) {
  struct heapprof_stats stats = {0};
  if (heapprof_stats(&stats) != 0) _exit(20);
  return stats;
}

/* Exit status: what is wrong; 0: nothing, and there was no such piece; 1: nothing. */
static int run_without_pieces(uint64_t first, uint64_t last) {
  heapprof_test_refuse_memory(first, last);
  if (heapprof_set_sample_rate(1) != 0) return 2;
  struct heapprof_stats before = now();
  for (unsigned i = 0; i < BLOCKS; i++) {
    blocks[i] = allocate(i, PATH_BITS, 100);
    if (blocks[i] == NULL) return 3;
    memset(blocks[i], (int)i, 100);
  }
  struct heapprof_stats full = now();
  if (full.alloc_objects_estimate - before.alloc_objects_estimate != BLOCKS) return 4;
  if (full.alloc_bytes_estimate - before.alloc_bytes_estimate != BLOCKS * 100) return 5;
  uint64_t known = full.inuse_objects_estimate + full.lost_live_table_full;
  if (known - before.inuse_objects_estimate != BLOCKS) return 6;
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (*(unsigned char *)blocks[i] != (unsigned char)i) return 7;
    free(blocks[i]);
  }
  if (now().inuse_objects_estimate != before.inuse_objects_estimate) return 8;
  void *library = dlopen(plugin, RTLD_NOW);
  void *(*call)(size_t) = library == NULL ? NULL : (void *(*)(size_t))dlsym(library, "plugin_allocate");
  if (call == NULL) return 12;
  free(call(50));
  dlclose(library);
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0) return 9;
  int dumped = heapprof_dump(NULL), reset = heapprof_reset();
  if ((dumped != 0 && dumped != -ENOMEM) || (reset != 0 && reset != -ENOMEM)) return 10;
  bool was_refused = heapprof_test_was_refused();
  heapprof_test_refuse_memory(0, 0);
  if (heapprof_reset() != 0 || heapprof_dump(NULL) != 0) return 11;
  return was_refused ? 1 : 0;
}

/* 0 or 1 as above. */
static int try(uint64_t first, uint64_t last) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) _exit(run_without_pieces(first, last));
  if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) <= 1) return WEXITSTATUS(status);
  printf("piece %llu%s: status %d, signal %d\n", (unsigned long long)first, first == last ? "" : " and all later",
         WEXITSTATUS(status), WTERMSIG(status));
  exit(31);
}

int main(int argc, char **argv) {
  if (argc < 2) return 30;
  plugin = argv[1];
  uint64_t k = 1;
  for (; k < PIECES_MAX && try(k, k) == 1; k++) try(k, UINT64_MAX);
  printf("%llu pieces\n", (unsigned long long)k - 1);
  return k > 20 && k < PIECES_MAX ? 0 : 32;
}
