/* SPDX-License-Identifier: MIT
 * nothing.c - a program that allocates a little and ends. */
#include <stdlib.h>

int main(void) {
  void *volatile p = malloc(1000);
  free(p);
  return 0;
}
