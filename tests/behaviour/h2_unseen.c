/* SPDX-License-Identifier: MIT
 * Memory that no profile shows, and memory that only looks like it: FOLDER WHAT [PLUGIN]. Dumps by call while it is there. */
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "behaviour.h"

enum { BYTES = 300 * 1000 * 1000, BLOCKS = 200000, THREADS = 64, THREAD_BYTES = 5 << 20, PAGE = 4096 };

extern void *__libc_malloc(size_t n);

static void *blocks[BLOCKS];

static void *touched(void *p, size_t n) {
  CHECK(p != NULL && p != MAP_FAILED, "no memory");
  for (size_t i = 0; i < n; i += PAGE) ((volatile char *)p)[i] = 1;
  return p;
}

static void mapped(void) { touched(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), BYTES); }

/* Pieces of PIECE bytes by another way into the C library. */
enum { PIECE = 100000 };
static void past(void *(*allocate)(size_t)) {
  for (int i = 0; i < BYTES / PIECE; i++) touched(allocate(PIECE), PIECE);
}

static void past_by_plugin(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
  CHECK(library != NULL, "%s", dlerror());
  past((void *(*)(size_t))dlsym(library, "plugin_allocate"));
}

static size_t some_size(int i) { return 100 + (size_t)i * 7919 % 5000; }

static void ordinary(void) {
  for (int i = 0; i < BLOCKS; i++) blocks[i] = touched(malloc(some_size(i)), some_size(i));
}

static void fragmented(void) {
  ordinary();
  for (int i = 0; i < BLOCKS; i++) {
    if (i % 20 != 0) free(blocks[i]);
  }
}

/* Each block dirties a page of its own. */
static void sparse(void) {
  for (int i = 0; i < BLOCKS / 2; i++) CHECK_EQUAL(posix_memalign(&blocks[i], PAGE, 64), 0);
  for (int i = 0; i < BLOCKS / 2; i++) touched(blocks[i], 64);
}

static void grown(void) {
  for (size_t n = 1 << 20; n < BYTES; n += n / 4) blocks[0] = touched(realloc(blocks[0], n), n);
}

static void unsampled(void) {
  CHECK_EQUAL(heapprof_stop(), 0);
  ordinary();
  CHECK_EQUAL(heapprof_start(), 0);
}

static pthread_barrier_t all_deep, may_return;
static void *use_stack(void *unused) {
  char here[THREAD_BYTES];
  touched(here, sizeof here);
  pthread_barrier_wait(&all_deep);
  pthread_barrier_wait(&may_return);
  return unused;
}

static void recurse_and_dump(const char *folder, size_t left);

static void dump_thrice(const char *folder) {
  CHECK_EQUAL(dump_to(folder, "one"), 0);
  CHECK_EQUAL(dump_to(folder, "two"), 0);
  CHECK_EQUAL(dump_to(folder, "three"), 0);
}

NOINLINE static void recurse_and_dump(const char *folder, size_t left) {
  char here[64 * 1024];
  touched(here, sizeof here);
  if (left <= sizeof here) {
    dump_thrice(folder);
  } else {
    recurse_and_dump(folder, left - sizeof here);
  }
  __asm__ volatile("" : : "r"(here) : "memory");
}

static void in_threads(const char *folder) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&all_deep, NULL, THREADS + 1);
  pthread_barrier_init(&may_return, NULL, THREADS + 1);
  run_threads(threads, THREADS, use_stack);
  pthread_barrier_wait(&all_deep);
  dump_thrice(folder);
  pthread_barrier_wait(&may_return);
  join_threads(threads, THREADS);
}

/* Two gigabytes come and go while one dump follows upon another: much of it goes between two looks of a dump. Each block is less than
 * what is spoken of, so it may be on its way in or out; and above what glibc ever keeps. */
enum { SWINGING = 64, SWINGING_BYTES = 33 << 20, SWINGING_DUMPS = 500 };
static bool is_over;

static void *swing(void *unused) {
  void *some[SWINGING];
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    for (int i = 0; i < SWINGING; i++) CHECK((some[i] = malloc(SWINGING_BYTES)) != NULL, "no memory");
    for (int i = 0; i < SWINGING; i++) free(some[i]);
  }
  return unused;
}

static void dump_while_it_swings(const char *folder) {
  pthread_t thread;
  past(malloc); /* below 64 MiB resident nothing is looked at */
  run_threads(&thread, 1, swing);
  for (int i = 0; i < SWINGING_DUMPS; i++) CHECK_EQUAL(dump_to(folder, "one"), 0);
  __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
  join_threads(&thread, 1);
}

static void report(void) {
  char *p = touched(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), BYTES);
  for (size_t i = 0; i + PIECE <= BYTES; i += PIECE) CHECK_EQUAL(heapprof_report_alloc(p + i, PIECE), 0);
}

int main(int argc, char **argv) {
  CHECK(argc > 2, "FOLDER WHAT [PLUGIN]");
  const char *what = argv[2];
  heapprof_test_hold_clock(); /* at these dumps the allocator's figures are fresh */
  if (strcmp(what, "threads") == 0) {
    in_threads(argv[1]);
    return 0;
  }
  if (strcmp(what, "swinging") == 0) {
    dump_while_it_swings(argv[1]);
    return 0;
  }
  if (strcmp(what, "stack") == 0) {
    recurse_and_dump(argv[1], BYTES);
    return 0;
  }
  if (strcmp(what, "mapped") == 0) mapped();
  if (strcmp(what, "libc") == 0) past(__libc_malloc);
  if (strcmp(what, "deepbind") == 0) past_by_plugin(argv[3]);
  if (strcmp(what, "ordinary") == 0) ordinary();
  if (strcmp(what, "fragmented") == 0) fragmented();
  if (strcmp(what, "sparse") == 0) sparse();
  if (strcmp(what, "grown") == 0) grown();
  if (strcmp(what, "unsampled") == 0) unsampled();
  if (strcmp(what, "reported") == 0) report();
  dump_thrice(argv[1]);
  heapprof_test_advance_clock(150 * 1000000); /* at the end the allocator's figures are old */
  return 0;
}
