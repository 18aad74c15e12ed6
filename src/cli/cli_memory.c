/* SPDX-License-Identifier: MIT
 * cli_memory.c - see cli_memory.h. Callers: the whole command, one thread at a time per array.
 */
#include "cli_memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void out_of_memory(void) __attribute__((noreturn));

/* Two threads may get here at once: one says so and ends both. */
static void out_of_memory(void) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&said)) pause();
  fputs("heapprof: out of memory\n", stderr);
  exit(1);
}

void *hp_alloc(size_t size_bytes) {
  void *block = malloc(size_bytes != 0 ? size_bytes : 1);
  if (block == NULL) out_of_memory();
  return block;
}

void *hp_alloc_zeroed(size_t count, size_t size_bytes) {
  void *block = calloc(count != 0 ? count : 1, size_bytes != 0 ? size_bytes : 1);
  if (block == NULL) out_of_memory();
  return block;
}

void *hp_alloc_cleared(size_t count, size_t size_bytes) {
  void *block = hp_realloc(NULL, count, size_bytes);
  explicit_bzero(block, count * size_bytes); /* a compiler makes calloc of malloc and memset */
  return block;
}

void *hp_realloc(void *old, size_t count, size_t size_bytes) {
  if (count == 0 || size_bytes == 0) count = size_bytes = 1;
  void *block = reallocarray(old, count, size_bytes);
  if (block == NULL) out_of_memory();
  return block;
}

char *hp_strdup(const char *text) {
  char *copy = strdup(text);
  if (copy == NULL) out_of_memory();
  return copy;
}

uint32_t *hp_alloc_none(size_t count) {
  uint32_t *array = hp_alloc(count * sizeof *array);
  memset(array, 0xff, count * sizeof *array);
  return array;
}

char *hp_format(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) out_of_memory();
  return text;
}

void hp_array_reserve(void *array, size_t *capacity, size_t count, size_t size_bytes) {
  if (count <= *capacity) return;
  size_t wanted = *capacity < 16 ? 16 : *capacity + *capacity / 2;
  if (wanted < count) wanted = count;
  void *old;
  memcpy(&old, array, sizeof old);
  void *grown = hp_realloc(old, wanted, size_bytes);
  memcpy(array, &grown, sizeof grown);
  *capacity = wanted;
}
