/* SPDX-License-Identifier: MIT
 * in_the_middle.c - claim: a signal, a fork and an exit that come while the profiler is at work, as a handler of the program's may
 * bring them, wait for nothing and lose nothing but what is said. With the testing library, which stops at the right places.
 *   in_the_middle signal    in a sample: the dump is made at its end
 *   in_the_middle jump      out of a sample by longjmp, and out of a stack overflow: what comes next is sampled, and dumped
 *   in_the_middle free      a free and a realloc in a dump, with its lock held: the records stay and are closed as missed frees when the
 *                           addresses come again
 *   in_the_middle fork      in a dump, with its lock held: the child gives it up, may go on as it likes, and dumps itself
 *   in_the_middle exit      the same, and the child calls exit() there; ages are asked for, whose books may be half changed: no dump */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heapprof.h"
#include "heapprof_testing.h"

static const char *what;
static int child_status;
static bool is_child;

static uint64_t dumps(void) {
  struct heapprof_stats stats = {0};
  return heapprof_stats(&stats) == 0 ? stats.dumps : UINT64_MAX;
}

static void use_heap(void) {
  for (int i = 1; i < 300; i++) free(memset(malloc((size_t)i), 1, (size_t)i));
}

static int signal_in_sample(void) {
  use_heap();
  uint64_t before = dumps();
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_SIGNALS);
  void *volatile block = malloc(100);
  heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_REAL);
  if (dumps() != before + 1) return 1;
  free(block);
  use_heap();
  return dumps() == before + 1 ? 0 : 2;
}

static sigjmp_buf target;
static void jump(int number) {
  (void)number;
  siglongjmp(target, 1);
}

/* At rate 1 a block to each frame, so that the walks for them come to the end of the stack first. */
static volatile bool is_endless = true;
static __attribute__((noinline)) int use_up_stack(int depth) {
  void *volatile block = malloc(10);
  volatile char room[256];
  memset((char *)room, depth, sizeof room);
  free(block);
  return is_endless ? use_up_stack(depth + 1) + room[depth & 255] : 0;
}

static __attribute__((noinline)) uint64_t sampled_by_use(void) {
  struct heapprof_stats before = {0}, after = {0};
  if (heapprof_stats(&before) != 0) return 0;
  use_heap();
  return heapprof_stats(&after) == 0 ? after.samples - before.samples : 0;
}

static __attribute__((noinline)) void allocate_and_jump(void) {
  void *volatile block = malloc(100);
  free(block);
}

static int jump_out_of_samples(void) {
  static char handlers_stack[64 * 1024];
  stack_t stack = {.ss_sp = handlers_stack, .ss_size = sizeof handlers_stack};
  struct sigaction action = {.sa_handler = jump, .sa_flags = SA_ONSTACK}, before;
  uint64_t all = sampled_by_use();
  if (all == 0 || sigaltstack(&stack, NULL) != 0 || sigaction(SIGSEGV, &action, NULL) != 0) return 20;
  for (int i = 0; i < 100; i++) {
    if (sigaction(SIGUSR2, &action, &before) != 0) return 21;
    heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_SIGNALS);
    if (sigsetjmp(target, 1) == 0) allocate_and_jump();
    heapprof_test_unwinder(HEAPPROF_TEST_UNWINDER_REAL);
    if (sigaction(SIGUSR2, &before, NULL) != 0) return 22;
    if (sampled_by_use() != all) return 23;
  }
  if (sigsetjmp(target, 1) == 0) use_up_stack(0);
  if (sampled_by_use() != all) return 24;
  uint64_t dumped = dumps();
  raise(SIGUSR2);
  return dumps() == dumped + 1 ? 0 : 25;
}

static uint64_t missed_frees(void) {
  struct heapprof_stats stats = {0};
  return heapprof_stats(&stats) == 0 ? stats.missed_frees : UINT64_MAX;
}
static uint64_t live_objects(void) {
  struct heapprof_stats stats = {0};
  return heapprof_stats(&stats) == 0 ? stats.inuse_objects_estimate : UINT64_MAX;
}

enum { FREED_BYTES = 200, MOVED_BYTES = 300 };
static void *volatile freed, *volatile moved;

static void free_in_dump(void) {
  heapprof_test_pause_dump(NULL);
  free(freed);
  moved = realloc(moved, 100000);
}

static int frees_in_dump(void) {
  freed = malloc(FREED_BYTES);
  moved = malloc(MOVED_BYTES);
  void *volatile old = moved, *volatile behind = malloc(MOVED_BYTES); /* so that it cannot grow where it is */
  memset(moved, 'm', MOVED_BYTES);
  uint64_t missed = missed_frees(), live = live_objects();
  heapprof_test_pause_dump(free_in_dump);
  if (heapprof_dump(NULL) != 0) return 10;
  if (moved == NULL || moved == old || *(char *)moved != 'm' || missed_frees() != missed || live_objects() != live)
    return 11;
  void *volatile again[2] = {malloc(FREED_BYTES), malloc(MOVED_BYTES)};
  if (again[0] != freed || again[1] != old) return 12; /* glibc gives the block just freed */
  if (missed_frees() != missed + 2 || live_objects() != live) return 13;
  free(again[0]);
  free(again[1]);
  free(behind);
  return live_objects() == live - 3 ? 0 : 14;
}

static void in_dump(void) {
  heapprof_test_pause_dump(NULL);
  if (heapprof_dump(NULL) != -EBUSY || heapprof_reset() != -EBUSY) _exit(3);
  pid_t child = fork();
  if (child == 0) {
    is_child = true;
    use_heap();
    if (strcmp(what, "exit") == 0) exit(5);
    return;
  }
  waitpid(child, &child_status, 0);
}

static int fork_in_dump(void) {
  use_heap();
  heapprof_test_pause_dump(in_dump);
  int result = heapprof_dump(NULL);
  if (is_child) { /* it came back into the dump of its parent, and out of it */
    use_heap();
    exit(heapprof_dump(NULL) == 0 && dumps() >= 1 ? 5 : 6);
  }
  if (result != 0) return 7;
  if (!WIFEXITED(child_status) || WEXITSTATUS(child_status) != 5) return 8;
  use_heap();
  return heapprof_dump(NULL) == 0 && dumps() == 2 ? 0 : 9;
}

int main(int argc, char **argv) {
  what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "signal") == 0) return signal_in_sample();
  if (strcmp(what, "jump") == 0) return jump_out_of_samples();
  return strcmp(what, "free") == 0 ? frees_in_dump() : fork_in_dump();
}
