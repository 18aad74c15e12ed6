/* SPDX-License-Identifier: MIT
 * check_profile.c - the project's own checker on whole files: check_profile FILE... ; exit 1 and one line at the first fault.
 * The kind is told from the name, as the library puts it in (heap, alloc, delta, peak; else full). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "hot.h"
#include "pprof_check.h"

struct hp_hot hp_hot; /* the tables behind the export folder want one */

static enum hp_profile_kind kind_of(const char *path) {
  static const char *const words[] = {".full.", ".heap.", ".alloc.", ".delta.", ".peak."};
  for (unsigned i = 1; i < sizeof words / sizeof words[0]; i++) {
    if (strstr(path, words[i]) != NULL) return (enum hp_profile_kind)i;
  }
  return HP_KIND_FULL;
}

static unsigned char *read_gzip(const char *path, size_t *out_size) {
  gzFile file = gzopen(path, "rb");
  if (file == NULL) return NULL;
  size_t capacity = 1 << 20, size = 0;
  unsigned char *bytes = malloc(capacity);
  int n;
  while (bytes != NULL && (n = gzread(file, bytes + size, (unsigned)(capacity - size))) > 0) {
    size += (size_t)n;
    if (size == capacity) bytes = realloc(bytes, capacity *= 2);
  }
  bool is_gzip = !gzdirect(file);
  int status = gzclose(file);
  if (status != Z_OK || !is_gzip) {
    free(bytes);
    return NULL;
  }
  *out_size = size;
  return bytes;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    size_t size = 0;
    unsigned char *bytes = read_gzip(argv[i], &size);
    if (bytes == NULL) {
      printf("%s: cannot be read as gzip\n", argv[i]);
      return 1;
    }
    struct hp_arena arena = {0};
    const char *fault = NULL;
    int result = hp_pprof_check_buffer(bytes, size, kind_of(argv[i]), &arena, &fault);
    if (result != 0) {
      printf("%s: %s\n", argv[i], fault != NULL ? fault : "error");
      return 1;
    }
    hp_arena_reset(&arena);
    free(bytes);
  }
  return 0;
}
