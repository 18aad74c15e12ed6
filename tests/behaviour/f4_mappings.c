/* SPDX-License-Identifier: MIT
 * F4: the mappings: the executable first, also when its file is deleted; a library unloaded before the dump, and another one
 * at its place. FOLDER PLUGIN-A PLUGIN-B [delete] */
#include <dlfcn.h>

#include "behaviour.h"

static void *block_of(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL, "%s", dlerror());
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
  dprintf(1, "%p\n", (void *)(uintptr_t)allocate);
  void *p = allocate(1000);
  dlclose(library);
  return p;
}

int main(int argc, char **argv) {
  if (argc > 4) CHECK_EQUAL(unlink(argv[4]), 0); /* the file of this process */
  void *a = block_of(argv[2]);
  void *b = block_of(argv[3]);
  CHECK_EQUAL(dump_to(argv[1], "unloaded"), 0);
  free(a);
  free(b);
  return 0;
}
