/* SPDX-License-Identifier: MIT
 * G1: a forked child keeps the live records and the alloc columns (it really holds that memory); its delta starts empty, its
 * counters of dumps at 0; it writes files of its own; no lock is left taken, whatever the other threads were doing.
 *   FOLDER storm      forks while four threads allocate and dump, and while a slow dump is under way
 *   FOLDER unwanted   under HEAPPROF_CHILDREN=0
 *   FOLDER between    frees nearly all and forks again between our fork handlers, while this thread has all locks */
#include <dlfcn.h>
#include <fcntl.h>

#include "behaviour.h"

enum { LIVE = 1000, FREED = 400, BUSY = 4 };
static void *live[LIVE];
static int stop; /* atomic */

NOINLINE static void *parent_site(void) {
  void *volatile p = malloc(50);
  return p;
}
NOINLINE static void *child_site(void) {
  void *volatile p = malloc(60);
  return p;
}

static void *busy(void *argument) {
  uint64_t state = (uint64_t)(intptr_t)argument;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) free(malloc(random_next(&state) % 500));
  return NULL;
}

static int wait_for(pid_t child) {
  int status = -1;
  for (int i = 0; i < 30000; i++) { /* five minutes */
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    wait_ms(10);
  }
  kill(child, SIGKILL);
  return -1;
}

static int open_files(void) {
  int n = 0;
  for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

/* In the child of a fork that came during a slow dump. */
static void look_around(const char *folder, int files_before) {
  heapprof_test_pause_dump(NULL);
  struct heapprof_stats s = stats_now();
  CHECK_EQUAL(s.dumps, 0);
  CHECK_EQUAL(s.dumps_failed, 0);
  CHECK(s.live_samples >= LIVE, "%lu live", (unsigned long)s.live_samples);
  CHECK(open_files() <= files_before, "%d files open, %d before", open_files(), files_before);
  CHECK_EQUAL(dump_to(folder, "child-first"), 0);
  for (int i = 0; i < FREED; i++) free(live[i]);
  for (int i = 0; i < 7; i++) live[i] = child_site();
  CHECK_EQUAL(dump_to(folder, "child-second"), 0);
  CHECK_EQUAL(heapprof_dump(NULL), 0); /* at a name of its own: %p, and numbers from 0 */
  CHECK_EQUAL(stats_now().dumps, 3);
  CHECK_EQUAL(stats_now().missed_frees, 0);
}

static int during_slow_dump(const char *folder) {
  int files = open_files();
  pthread_t threads[BUSY], dumper;
  run_threads(threads, BUSY, busy);
  heapprof_test_pause_dump(slow_dump);
  struct dump_call call = {folder, "parent", -1};
  pthread_create(&dumper, NULL, dump_in_thread, &call);
  wait_for_paused_dump();
  pid_t child = fork();
  CHECK(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    look_around(folder, files);
    _exit(0);
  }
  int status = wait_for(child);
  heapprof_test_pause_dump(NULL);
  let_dump_go();
  pthread_join(dumper, NULL);
  CHECK_EQUAL(call.result, 0);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  join_threads(threads, BUSY);
  return status;
}

static int dump_result;
static const char *storm_folder;
static void *dumping(void *argument) {
  (void)argument;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && dump_result == 0) dump_result = dump_to(storm_folder, "storm");
  return NULL;
}

static int storm(const char *folder) {
  pthread_t threads[BUSY], dumper;
  storm_folder = folder;
  run_threads(threads, BUSY, busy);
  run_threads(&dumper, 1, dumping);
  for (long i = 0, n = scaled(120, 1000); i < n; i++) {
    pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
      for (int k = 0; k < 100; k++) free(malloc(100));
      char name[64];
      snprintf(name, sizeof name, "storm-child-%ld", i % 50);
      if (i % 10 == 0) _exit(dump_to(folder, name) == 0 ? 0 : 4);
      _exit(stats_now().live_samples >= LIVE ? 0 : 5);
    }
    int status = wait_for(child);
    CHECK(status == 0, "child %ld: %d", i, status);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  join_threads(threads, BUSY);
  join_threads(&dumper, 1);
  CHECK_EQUAL(dump_result, 0);
  CHECK_EQUAL(stats_now().missed_frees, 0);
  return 0;
}

static int unwanted(const char *folder) {
  pid_t child = fork();
  if (child == 0) {
    if (heapprof_active() || heapprof_start() != -EPERM || dump_to(folder, "unwanted") != -EPERM) _exit(1);
    heapprof_test_advance_clock((int64_t)3600 * 1000000000); /* a period has passed */
    for (int i = 0; i < LIVE; i++) free(live[i]);
    raise(SIGUSR2); /* the copy of our handler */
    exit(0);
  }
  int status = wait_for(child);
  CHECK_EQUAL(heapprof_active(), 1);
  return status;
}

/* ---- between our fork handlers ---- */
enum { MANY = 100000 };
static void *many[MANY];
static const char *between_folder; /* NULL: the handler does nothing */

static void fork_again(int number) {
  (void)number;
  pid_t child = fork();
  if (child == 0) {
    free(malloc(100));
    _exit(dump_to(between_folder, "between") == 0 && stats_now().live_samples == LIVE + 1 ? 0 : 6);
  }
  if (wait_for(child) != 0) _exit(7);
}

/* So many go that the tables shrink, for which there is no memory now. */
static void free_and_fork(void) {
  if (between_folder == NULL) return;
  for (int i = 1; i < MANY; i++) {
    free(many[i]);
    many[i] = NULL;
  }
  static volatile bool is_inside; /* the fork in the handler comes here too; raise() is declared a leaf */
  if (is_inside) return;
  is_inside = true;
  for (int i = 0; i < 3; i++) CHECK_EQUAL(heapprof_dump(NULL), -EBUSY); /* at once: this thread has the lock itself */
  CHECK_EQUAL(heapprof_reset(), -EBUSY);
  CHECK_EQUAL(dlclose(dlopen(NULL, RTLD_NOW)), 0);
  signal(SIGUSR1, fork_again);
  raise(SIGUSR1);
  is_inside = false;
}

/* Registered before ours, it runs when ours has taken everything. */
static void register_early(void) { pthread_atfork(free_and_fork, NULL, NULL); }
__attribute__((section(".preinit_array"), used)) static void (*const early)(void) = register_early;

static int between(const char *folder) {
  for (int i = 0; i < MANY; i++) many[i] = child_site();
  between_folder = folder;
  alarm(120); /* a hang is the fault that is looked for */
  pid_t child = fork();
  between_folder = NULL;
  if (child == 0) {
    free(malloc(100));
    _exit(stats_now().live_samples == LIVE + 1 ? 0 : 8);
  }
  int status = wait_for(child);
  alarm(0);
  CHECK_EQUAL(stats_now().live_samples, LIVE + 1);
  CHECK_EQUAL(dump_to(folder, "after"), 0);
  return status;
}

int main(int argc, char **argv) {
  for (int i = 0; i < LIVE; i++) live[i] = parent_site();
  int status = argc > 2 && strcmp(argv[2], "storm") == 0      ? storm(argv[1])
               : argc > 2 && strcmp(argv[2], "unwanted") == 0 ? unwanted(argv[1])
               : argc > 2 && strcmp(argv[2], "between") == 0  ? between(argv[1])
                                                              : during_slow_dump(argv[1]);
  CHECK_EQUAL(status, 0);
  return 0;
}
