/* SPDX-License-Identifier: MIT
 * opener.c - opens the library argv[1], calls its plugin(), closes it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 1000 };

int opener_main(const char *file) __attribute__((noinline));
int opener_main(const char *file) {
  void *kept = malloc(5000);
  for (int i = 0; i < BLOCKS; i++) free(malloc((size_t)i));
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    puts(dlerror());
    return 3;
  }
  int (*plugin)(void) = (int (*)(void))dlsym(library, "plugin");
  int result = plugin();
  printf("plugin %d\n", result);
  dlclose(library);
  free(kept);
  return result;
}

int main(int argc, char **argv) { return argc > 1 ? opener_main(argv[1]) : 2; }
