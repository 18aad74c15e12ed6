/* SPDX-License-Identifier: MIT
 * F4: libraries that were opened by words that mean nothing elsewhere: a relative path, and a descriptor that was closed.
 * FOLDER PLUGINS */
#include <dlfcn.h>
#include <fcntl.h>

#include "behaviour.h"

static void *block_of(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL, "%s", dlerror());
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
  return allocate(1000);
}

int main(int argc, char **argv) {
  (void)argc;
  char by_descriptor[64];
  CHECK_EQUAL(chdir(argv[2]), 0);
  void *a = block_of("./libplugin_a.so");
  int fd = open("libplugin_c.so", O_RDONLY);
  snprintf(by_descriptor, sizeof by_descriptor, "/proc/self/fd/%d", fd);
  void *c = block_of(by_descriptor);
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(dump_to(argv[1], "elsewhere"), 0);
  free(a);
  free(c);
  return 0;
}
