/* SPDX-License-Identifier: MIT
 * library_find.c - see library_find.h.
 */
#include "library_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_memory.h"

/* From the folder of the command: beside it, bin beside lib (multiarch too), src/cli beside src/preload. */
static const char *const from_command[] = {
    "", "/../lib", "/../lib/x86_64-linux-gnu", "/../lib/aarch64-linux-gnu", "/../lib64", "/../preload"};

static char *existing(const char *folder, const char *below) {
  char *path = hp_format("%s%s/libheapprof.so", folder, below);
  char *real = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;
  free(path);
  return real;
}

char *hp_library_find(const char *given, struct hp_error *error) {
  if (given != NULL) {
    char *real = realpath(given, NULL);
    if (real == NULL) hp_error_set(error, "%s: %s", given, strerror(errno));
    return real;
  }
  char *folder = realpath("/proc/self/exe", NULL);
  if (folder != NULL) {
    char *slash = strrchr(folder, '/');
    *slash = '\0';
    char *found = NULL;
    for (size_t i = 0; i < sizeof from_command / sizeof from_command[0] && found == NULL; i++)
      found = existing(folder, from_command[i]);
    if (found != NULL) {
      free(folder);
      return found;
    }
  }
  char *found = existing(HEAPPROF_INSTALL_LIBDIR, "");
  if (found == NULL)
    hp_error_set(error, "libheapprof.so is neither beside the command (%s, ../lib) nor in %s (--library=FILE names it)",
                 folder != NULL ? folder : "?", HEAPPROF_INSTALL_LIBDIR);
  free(folder);
  return found;
}
