/* SPDX-License-Identifier: MIT
 * frame_shapes.c - see frame_shapes.h. SHAPES_NAME is the table's name for one set of options. */
#include "frame_shapes.h"

#include <alloca.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE __attribute__((noinline)) static long

static volatile long sink;

SHAPE plain(struct path *path, long value) { return path_next(path, value + 1) + value; }

SHAPE saved_registers(struct path *path, long value) {
  long a = value * 3, b = value ^ 5, c = value + 7, d = value - 9, e = value * value, f = value | 1;
  long result = path_next(path, a);
  return result + a + b * c - d * e + f + path->length;
}

SHAPE small_buffer(struct path *path, long value) {
  char buffer[100];
  memset(buffer, (int)value, sizeof(buffer));
  sink = buffer[value & 63];
  long result = path_next(path, value);
  return result + buffer[sink & 63];
}

SHAPE large_buffer(struct path *path, long value) {
  char buffer[20000];
  buffer[value & 16383] = 1;
  sink = buffer[5];
  long result = path_next(path, value);
  return result + buffer[sink & 16383];
}

SHAPE dynamic_buffer(struct path *path, long value) {
  char *buffer = alloca(16 + (size_t)(value & 511));
  memset(buffer, 1, 16);
  sink = buffer[3];
  return path_next(path, value + buffer[2]) + buffer[1];
}

SHAPE realigned(struct path *path, long value) {
  _Alignas(64) char buffer[128];
  memset(buffer, (int)value, sizeof(buffer));
  sink = buffer[3];
  long result = path_next(path, value);
  return result + buffer[sink & 63];
}

SHAPE realigned_dynamic(struct path *path, long value) {
  _Alignas(64) char buffer[64];
  char *more = alloca(16 + (size_t)(value & 255));
  memset(buffer, (int)value, sizeof(buffer));
  memset(more, 3, 16);
  long a = value * 3, b = value ^ 5, c = value + 7;
  long result = path_next(path, value + more[2]);
  return result + buffer[sink & 63] + a * b + c;
}

SHAPE variadic_inner(struct path *path, long value, ...) {
  va_list list;
  va_start(list, value);
  long sum = va_arg(list, long) + va_arg(list, long);
  va_end(list);
  return path_next(path, value + sum) + sum;
}
SHAPE variadic(struct path *path, long value) { return variadic_inner(path, value, 3L, value) + 1; }

SHAPE many_inner(struct path *path, long a, long b, long c, long d, long e, long f, long g, long h, long i) {
  return path_next(path, a + b + c) + d + e + f + g + h + i;
}
SHAPE many_arguments(struct path *path, long value) {
  return many_inner(path, value, value + 1, value + 2, value + 3, 5, 6, value * 7, 8, value) +
         many_inner(path, 1, 2, 3, 4, 5, 6, 7, 8, 9);
}

SHAPE early_exit(struct path *path, long value) {
  if (value == -12345) return 0; /* shrink-wrapped prologue */
  long a = value * 11, b = value ^ 3;
  long result = path_next(path, value);
  for (int i = 0; i < 3; i++) result += a * b + i;
  return result;
}

SHAPE tail_called(struct path *path, long value) { return path_next(path, value + 1); }

static __thread struct path *sort_path_of_thread;
static int compare(const void *left, const void *right) {
  struct path *path = sort_path_of_thread;
  sort_path_of_thread = NULL;
  if (path != NULL) path_next(path, 1);
  return *(const int *)left - *(const int *)right;
}
SHAPE through_qsort(struct path *path, long value) {
  int numbers[] = {3, 1, 2, (int)value};
  sort_path_of_thread = path;
  qsort(numbers, 4, sizeof(int), compare);
  return numbers[0];
}
SHAPE through_bsearch(struct path *path, long value) {
  int numbers[] = {1, 2, 3};
  int key = 2;
  sort_path_of_thread = path;
  return bsearch(&key, numbers, 3, sizeof(int), compare) != NULL ? value : 0;
}

SHAPE vectors(struct path *path, long value) {
  double a[8], b[8];
  for (int i = 0; i < 8; i++) a[i] = (double)value * i;
  long result = path_next(path, value);
  for (int i = 0; i < 8; i++) b[i] = a[i] * a[7 - i] + 1;
  return result + (long)b[sink & 7];
}

const frame_shape SHAPES_NAME[SHAPE_COUNT];
const frame_shape SHAPES_NAME[SHAPE_COUNT] = {
    plain,    saved_registers, small_buffer, large_buffer, dynamic_buffer, realigned,       realigned_dynamic,
    variadic, many_arguments,  early_exit,   tail_called,  through_qsort,  through_bsearch, vectors,
};
