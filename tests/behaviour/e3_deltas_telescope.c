/* SPDX-License-Identifier: MIT
 * E3: the sum of the deltas is what was allocated, to the unit, under load, with a library loaded and unloaded in between, a
 * reset, and a file that could not be written. HEAPPROF_KIND=full,delta: both from one reading. FOLDER PLUGIN */
#include <dlfcn.h>

#include "behaviour.h"

enum { THREADS = 3 };
static int stop; /* atomic */

NOINLINE static void *site(int which, size_t n) {
  void *volatile p = which == 0 ? malloc(n) : calloc(1, n);
  return p;
}

static void *churn(void *argument) {
  uint64_t state = (uint64_t)(intptr_t)argument;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    uint64_t r = random_next(&state);
    free(site((int)(r % 2), r % 700));
  }
  return NULL;
}

static void use_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL, "%s", dlerror());
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
  for (int i = 0; i < 10; i++) free(allocate(1000));
  dlclose(library);
}

int main(int argc, char **argv) {
  CHECK(argc > 2, "plugin");
  pthread_t threads[THREADS];
  heapprof_set_sample_rate(500); /* weights that are no whole numbers */
  run_threads(threads, THREADS, churn);
  for (int i = 0; i < 12; i++) {
    char name[32];
    snprintf(name, sizeof name, "load-%02d", i);
    use_library(argv[2]);
    if (i == 6) {
      heapprof_test_fail_output(0, 0, EACCES, 0);
      CHECK_EQUAL(dump_to(argv[1], "failed"), -EACCES);
      heapprof_test_fail_output(0, 0, 0, 0);
    }
    CHECK_EQUAL(dump_to(argv[1], name), 0);
    wait_ms(10);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  join_threads(threads, THREADS);
  CHECK_EQUAL(dump_to(argv[1], "load-12"), 0);
  CHECK_EQUAL(heapprof_reset(), 0);
  CHECK_EQUAL(dump_to(argv[1], "reset"), 0);
  return 0;
}
