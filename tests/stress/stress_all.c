/* SPDX-License-Identifier: MIT
 * stress_all.c - everything at once, for a given time: threads that come and go, fork, posix_spawn, dlopen and dlclose, C++
 * exceptions, realloc, blocks freed by other threads, coroutines, deep recursion, signals to the process and to threads,
 * dumps by signal and by call. Every block carries a pattern that is checked when it is freed; every child must end in time
 * with its own status; every worker must go on. One line at the end: what was done. Status 0: nothing went wrong. stress_all
 * SECONDS [WORKERS] STRESS_PLUGIN      path of the plugin STRESS_SPARE     set: no aligned blocks and no failing new (Debian
 * 12's mimalloc 2.0.9 fails both by itself: misaligned blocks with threads, abort() instead of bad_alloc) STRESS_PROFILES a
 * folder: a child that ended by exit() must have left <folder>/<name>.<pid>.pb.gz (it is removed) */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "heapprof.h"

extern char **environ;

enum { WORKERS_MAX = 32, KEPT = 256, SHARED = 64, CHILD_SECONDS = 600, STUCK_SECONDS = 900 };

struct worker {
  pthread_t thread;
  uint64_t random;
  uint64_t steps; /* atomic */
  void *kept[KEPT];
};

static struct worker workers[WORKERS_MAX];
static unsigned worker_count = 6;
static void *shared_slots[SHARED]; /* atomic: handed from thread to thread */
static bool is_over;               /* atomic */
static bool is_spared;
static const char *plugin_path, *profile_folder, *program_name;
static uint64_t forks, spawns, opens, throws, dumps, signals_sent, short_threads, jumps, coroutines;

/* glibc keeps a lock while a library registers or runs its exit handlers, and fork does not look after it: a child that is
 * to call exit() is forked while no thread opens or closes a library. All others are forked at any time. */
static pthread_rwlock_t exit_handlers_rest = PTHREAD_RWLOCK_INITIALIZER; /* read: dlopen, dlclose; write: such a fork */

#define COUNT(x) __atomic_fetch_add(&(x), 1, __ATOMIC_RELAXED)

static void die(const char *what) {
  fprintf(stderr, "stress_all[%d]: %s\n", (int)getpid(), what);
  _exit(3);
}

static uint64_t next_random(struct worker *w) {
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return w->random;
}

/* ---- blocks that know themselves ---- */
struct block {
  uint64_t size; /* of what follows */
  unsigned char bytes[];
};

static unsigned char pattern_of(const struct block *b) { return (unsigned char)(b->size * 31 + 7); }

static void check(const struct block *b) {
  size_t n = b->size;
  if (n > (size_t)64 << 20) die("a block's size is damaged");
  unsigned char p = pattern_of(b);
  for (size_t i = 0; i < n; i = i < 64 || i + 65 > n ? i + 1 : i + 61) {
    if (b->bytes[i] != p) die("a block's bytes are damaged");
  }
}

static void *fill(struct block *b, size_t n) {
  if (b == NULL) return NULL;
  b->size = n;
  memset(b->bytes, pattern_of(b), n);
  return b;
}

static size_t some_size(struct worker *w) {
  uint64_t r = next_random(w);
  switch (r % 16) {
    case 0: return r >> 8 & 0x3FFFF;
    case 1: return r >> 8 & 0xFFFF;
    default: return r >> 8 & 0x3FF;
  }
}

static void *make_block(struct worker *w) {
  size_t n = some_size(w);
  void *aligned = NULL;
  switch (next_random(w) % (is_spared ? 2 : 6)) {
    case 0: {
      struct block *b = calloc(1, sizeof *b + n);
      for (size_t i = 0; b != NULL && i < n; i += 97) {
        if (b->bytes[i] != 0) die("calloc gave memory that is not zero");
      }
      return fill(b, n);
    }
    case 2:
      if (posix_memalign(&aligned, 256, sizeof(struct block) + n) != 0) return NULL;
      if ((uintptr_t)aligned % 256 != 0) die("posix_memalign did not align");
      return fill(aligned, n);
    case 3: return fill(aligned_alloc(64, (sizeof(struct block) + n + 63) & ~(size_t)63), n);
    default: return fill(malloc(sizeof(struct block) + n), n);
  }
}

static void drop_block(void *block) {
  if (block == NULL) return;
  check(block);
  if (malloc_usable_size(block) < ((struct block *)block)->size + sizeof(struct block))
    die("malloc_usable_size is too small");
  free(block);
}

static void churn(struct worker *w) {
  for (int i = 0; i < 50; i++) {
    void **slot = &w->kept[next_random(w) % KEPT];
    drop_block(*slot);
    *slot = make_block(w);
  }
}

static void resize(struct worker *w) {
  void **slot = &w->kept[next_random(w) % KEPT];
  struct block *b = *slot;
  if (b == NULL) return;
  check(b);
  size_t old = b->size, n = some_size(w);
  unsigned char p = pattern_of(b);
  struct block *fresh = next_random(w) % 2 == 0 ? realloc(b, sizeof *b + n) : reallocarray(b, 1, sizeof *b + n);
  if (fresh == NULL) return;
  for (size_t i = 0; i < old && i < n; i += 13) {
    if (fresh->bytes[i] != p) die("realloc lost bytes");
  }
  *slot = fill(fresh, n);
}

static void hand_over(struct worker *w) {
  void *mine = make_block(w);
  void *theirs = __atomic_exchange_n(&shared_slots[next_random(w) % SHARED], mine, __ATOMIC_ACQ_REL);
  drop_block(theirs);
}

/* ---- other stacks ---- */
static __attribute__((noinline)) int recurse(struct worker *w, int depth) {
  volatile char pad[64];
  pad[0] = (char)depth;
  if (depth == 0) {
    hand_over(w);
    return pad[0];
  }
  return recurse(w, depth - 1) + pad[0];
}

static __thread ucontext_t outside, inside;
static void coroutine_body(void) {
  free(malloc(200));
  swapcontext(&inside, &outside);
  free(malloc(300));
}

static void run_coroutine(void) {
  size_t bytes = 32768;
  char *stack = malloc(bytes);
  if (stack == NULL) return;
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = bytes;
  inside.uc_link = &outside;
  makecontext(&inside, coroutine_body, 0);
  swapcontext(&outside, &inside);
  free(malloc(100));
  swapcontext(&outside, &inside);
  free(stack);
  COUNT(coroutines);
}

/* ---- threads and children ---- */
static void *short_thread(void *argument) {
  struct worker *w = argument;
  struct worker mine = {.random = w->random | 1};
  for (int i = 0; i < 20; i++) hand_over(&mine);
  return NULL;
}

static void start_short_thread(struct worker *w) {
  pthread_t thread;
  pthread_attr_t attributes;
  bool is_small = next_random(w) % 2 == 0, is_detached = next_random(w) % 4 == 0;
  pthread_attr_init(&attributes);
  if (is_small) pthread_attr_setstacksize(&attributes, 32768);
  static struct worker seed = {.random = 12345};
  if (pthread_create(&thread, &attributes, short_thread, is_detached ? &seed : w) == 0) {
    if (is_detached) {
      pthread_detach(thread);
    } else {
      pthread_join(thread, NULL);
    }
    COUNT(short_threads);
  }
  pthread_attr_destroy(&attributes);
}

/* profile_name: the executable's whose profile must be there; NULL: none need be. */
static void check_child(pid_t child, int wanted, const char *profile_name) {
  int status;
  while (waitpid(child, &status, 0) != child) {
    if (errno != EINTR) die("waitpid");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted) {
    fprintf(stderr, "stress_all: a child ended with 0x%x instead of status %d\n", status, wanted);
    _exit(3);
  }
  if (profile_folder == NULL || profile_name == NULL) return;
  char path[1024];
  snprintf(path, sizeof path, "%s/%s.%d.pb.gz", profile_folder, profile_name, (int)child);
  if (unlink(path) != 0) die("a child that ended by exit() left no profile");
}

static void child_work(struct worker *w, unsigned kind) {
  signal(SIGALRM, SIG_DFL);
  alarm(CHILD_SECONDS);
  for (int i = 0; i < 5; i++) churn(w);
  if (kind == 1) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_thread, w) == 0) pthread_join(thread, NULL);
  }
  if (kind == 2) raise(SIGUSR2);
  if (kind == 3) {
    pid_t grandchild = fork();
    if (grandchild == 0) {
      churn(w);
      _exit(9);
    }
    check_child(grandchild, 9, NULL);
  }
  if (kind == 4) {
    execl("/bin/true", "true", NULL);
    _exit(1);
  }
  if (kind == 5) _exit(0);
  exit(0);
}

static void fork_child(struct worker *w) {
  unsigned kind = (unsigned)(next_random(w) % 6);
  bool will_exit = kind < 4;
  if (will_exit) pthread_rwlock_wrlock(&exit_handlers_rest);
  pid_t child = fork();
  if (child == 0) child_work(w, kind);
  if (will_exit) pthread_rwlock_unlock(&exit_handlers_rest);
  if (child < 0) return;
  check_child(child, 0, kind < 4 ? program_name : kind == 4 ? "true" : NULL);
  COUNT(forks);
}

static void spawn_child(void) {
  pid_t child;
  char *const arguments[] = {(char *)"true", NULL};
  if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0) {
    check_child(child, 0, "true");
    COUNT(spawns);
  }
}

/* ---- libraries and exceptions ---- */
static void use_plugin(struct worker *w) {
  if (plugin_path == NULL) return;
  int mode = next_random(w) % 2 == 0 ? RTLD_NOW | RTLD_LOCAL : RTLD_LAZY | RTLD_GLOBAL;
  pthread_rwlock_rdlock(&exit_handlers_rest);
  void *handle = dlopen(plugin_path, mode);
  pthread_rwlock_unlock(&exit_handlers_rest);
  if (handle == NULL) die("dlopen");
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(handle, "plugin_allocate");
  int (*throw)(int) = (int (*)(int))dlsym(handle, "plugin_throw");
  int (*bad)(void) = (int (*)(void))dlsym(handle, "plugin_bad_alloc");
  if (allocate == NULL || throw == NULL || bad == NULL) die("dlsym");
  size_t n = some_size(w);
  void *old = __atomic_exchange_n(&shared_slots[next_random(w) % SHARED], fill(allocate(sizeof(struct block) + n), n),
                                  __ATOMIC_ACQ_REL);
  drop_block(old);
  if (throw((int)(next_random(w) % 40)) != 100) die("the exception did not arrive");
  if (!is_spared && bad() != 0) die("no bad_alloc");
  pthread_rwlock_rdlock(&exit_handlers_rest);
  if (dlclose(handle) != 0) die("dlclose");
  pthread_rwlock_unlock(&exit_handlers_rest);
  COUNT(opens);
  COUNT(throws);
}

/* ---- signals ---- */
static __thread sigjmp_buf jump_target;
static __thread volatile sig_atomic_t may_jump;

static void on_tick(int number) {
  int saved = errno;
  errno = number; /* what a handler leaves in errno is its own business, what we find there is not */
  errno = saved;
}

static void on_jump(int number) {
  (void)number;
  if (may_jump) siglongjmp(jump_target, 1);
}

static void jump_out_of_handler(void) {
  if (sigsetjmp(jump_target, 1) == 0) {
    may_jump = 1;
    raise(SIGUSR1);
    die("no jump");
  }
  may_jump = 0;
  free(malloc(64));
  COUNT(jumps);
}

static void send_signal(struct worker *w) {
  if (next_random(w) % 2 == 0) {
    kill(getpid(), SIGUSR2);
  } else {
    pthread_kill(workers[next_random(w) % worker_count].thread, SIGUSR2);
  }
  COUNT(signals_sent);
}

static void dump_by_call(void) {
  char path[1024];
  if (!heapprof_active() || profile_folder == NULL) return;
  snprintf(path, sizeof path, "%s/call.pb.gz", profile_folder);
  int result = heapprof_dump(path);
  if (result != 0 && result != -EBUSY) die("heapprof_dump failed");
  COUNT(dumps);
}

/* ---- a worker ---- */
static void step(struct worker *w) {
  uint64_t r = next_random(w) % 1000;
  errno = 1234;
  if (r < 600)
    churn(w);
  else if (r < 750)
    resize(w);
  else if (r < 850)
    hand_over(w);
  else if (r < 880)
    recurse(w, (int)(next_random(w) % 300));
  else if (r < 910)
    run_coroutine();
  else if (r < 930)
    start_short_thread(w);
  else if (r < 945)
    use_plugin(w);
  else if (r < 955)
    jump_out_of_handler();
  else if (r < 985)
    send_signal(w);
  else if (r < 992)
    fork_child(w);
  else if (r < 995)
    spawn_child();
  else if (r < 996)
    dump_by_call();
}

/* Workers signal each other: none begins before all are known, and none ends before all have done with it. */
static pthread_barrier_t all_are_there, all_are_done;

static void *work(void *argument) {
  struct worker *w = argument;
  pthread_barrier_wait(&all_are_there);
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    step(w);
    COUNT(w->steps);
  }
  for (int i = 0; i < KEPT; i++) drop_block(w->kept[i]);
  pthread_barrier_wait(&all_are_done);
  return NULL;
}

/* ---- the watch ---- */
static time_t even_seconds(void) { /* by the clock that nobody sets */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static void watch(unsigned seconds) {
  uint64_t seen[WORKERS_MAX] = {0};
  time_t moved[WORKERS_MAX], begin = even_seconds();
  for (unsigned i = 0; i < worker_count; i++) moved[i] = begin;
  while (even_seconds() - begin < (time_t)seconds) {
    const struct timespec tenth = {0, 100000000};
    nanosleep(&tenth, NULL);
    for (unsigned i = 0; i < worker_count; i++) {
      uint64_t now = __atomic_load_n(&workers[i].steps, __ATOMIC_RELAXED);
      if (now != seen[i]) moved[i] = even_seconds();
      seen[i] = now;
      if (even_seconds() - moved[i] > STUCK_SECONDS) die("a worker is stuck");
    }
  }
  __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
}

static void install(int number, void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(number, &action, NULL);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  unsigned seconds = (unsigned)strtoul(argv[1], NULL, 10);
  if (argc > 2) worker_count = (unsigned)strtoul(argv[2], NULL, 10);
  if (worker_count == 0 || worker_count > WORKERS_MAX) return 2;
  is_spared = getenv("STRESS_SPARE") != NULL;
  plugin_path = getenv("STRESS_PLUGIN");
  profile_folder = getenv("STRESS_PROFILES");
  program_name = strrchr(argv[0], '/') == NULL ? argv[0] : strrchr(argv[0], '/') + 1;
  install(SIGALRM, on_tick);
  install(SIGUSR1, on_jump);
  if (!heapprof_active()) install(SIGUSR2, on_tick);
  struct itimerval tick = {{0, 3000}, {0, 3000}};
  setitimer(ITIMER_REAL, &tick, NULL);
  pthread_barrier_init(&all_are_there, NULL, worker_count + 1);
  pthread_barrier_init(&all_are_done, NULL, worker_count);
  for (unsigned i = 0; i < worker_count; i++) {
    workers[i].random = (uint64_t)time(NULL) * 2654435761u + i * 977 + 1;
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) return 2;
  }
  pthread_barrier_wait(&all_are_there);
  watch(seconds);
  uint64_t steps = 0;
  for (unsigned i = 0; i < worker_count; i++) {
    pthread_join(workers[i].thread, NULL);
    steps += workers[i].steps;
  }
  for (int i = 0; i < SHARED; i++) drop_block(__atomic_exchange_n(&shared_slots[i], NULL, __ATOMIC_ACQ_REL));
  printf(
      "steps %llu forks %llu spawns %llu dlopens %llu throws %llu threads %llu coroutines %llu jumps %llu signals %llu "
      "calls %llu\n",
      (unsigned long long)steps, (unsigned long long)forks, (unsigned long long)spawns, (unsigned long long)opens,
      (unsigned long long)throws, (unsigned long long)short_threads, (unsigned long long)coroutines,
      (unsigned long long)jumps, (unsigned long long)signals_sent, (unsigned long long)dumps);
  return 0;
}
