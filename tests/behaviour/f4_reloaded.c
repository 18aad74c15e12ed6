/* SPDX-License-Identifier: MIT
 * F4: a library that is loaded again is the one it was, another one at its place is not, however often they change and while
 * dumps are written: FOLDER PLUGIN-A PLUGIN-B [LOADS]. Blocks of A have SIZE_A bytes, those of B SIZE_B. */
#include <dlfcn.h>

#include "behaviour.h"

enum { SIZE_A = 1000, SIZE_B = 3000, WARM = 40, FILES_MAX = 400 };

static bool is_over; /* atomic */
static int dumps;    /* atomic */
static const char *folder;
static long loads[2], reused;

static void use(const char *path, int which) {
  static void *last, *outlives[2];
  void *library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL, "%s", dlerror());
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
  reused += last == (void *)(uintptr_t)allocate;
  last = (void *)(uintptr_t)allocate;
  void *block = allocate(which == 0 ? SIZE_A : SIZE_B);
  CHECK_EQUAL(dlclose(library), 0);
  free(outlives[which]); /* counted out on a stack that is closed, or open again */
  outlives[which] = block;
  loads[which]++;
}

static void *dump_all_the_time(void *unused) {
  (void)unused;
  for (int i = 0; i < FILES_MAX && !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); i++) {
    char name[32];
    snprintf(name, sizeof name, "during%03d", i);
    CHECK_EQUAL(dump_to(folder, name), 0);
    __atomic_store_n(&dumps, i + 1, __ATOMIC_RELEASE);
    wait_ms(20);
  }
  return NULL;
}

/* So many are written: there are some during the loadings however few processors there are. */
static void wait_for_dumps(int n) {
  while (__atomic_load_n(&dumps, __ATOMIC_ACQUIRE) < n) wait_ms(1);
}

/* Between two dumps: one under way has scratch memory of its own. */
static struct heapprof_stats stats_between_dumps(void) {
  while (!heapprof_test_dump_try_lock()) wait_ms(1);
  struct heapprof_stats s = stats_now();
  heapprof_test_dump_unlock();
  return s;
}

int main(int argc, char **argv) {
  CHECK(argc > 3, "FOLDER PLUGIN-A PLUGIN-B [LOADS]");
  folder = argv[1];
  pthread_t thread;
  CHECK_EQUAL(pthread_create(&thread, NULL, dump_all_the_time, NULL), 0);
  for (int i = 0; i < WARM; i++) use(argv[2 + i % 2], i % 2);
  wait_for_dumps(2); /* what the dumping thread allocates once */
  struct heapprof_stats before = stats_between_dumps();
  long rounds = argc > 4 ? atol(argv[4]) : scaled(4000, 50000);
  for (long i = 0; i < rounds; i++) {
    if (i % (rounds / 10) == 0) wait_for_dumps(2 + (int)(i / (rounds / 10)));
    int which = i % 4 == 3 ? 1 - (int)(i / 1000 % 2) : (int)(i / 1000 % 2);
    use(argv[2 + which], which);
  }
  struct heapprof_stats after = stats_between_dumps();
  __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  CHECK_EQUAL(dump_to(folder, "last"), 0);
  dprintf(1, "%ld %ld %ld %lu %lu %lu %lu\n", loads[0], loads[1], reused, (unsigned long)before.stacks,
          (unsigned long)after.stacks, (unsigned long)before.metadata_bytes, (unsigned long)after.metadata_bytes);
  return 0;
}
