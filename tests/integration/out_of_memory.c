/* SPDX-License-Identifier: MIT
 * out_of_memory.c - claim: a program that fills its address space, with every block recorded, gets ENOMEM as ever, three
 * times over, and can free everything each time. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { LIMIT_BYTES = 200 << 20, BLOCK_BYTES = 200, ROUNDS = 3 };

int main(void) {
  const struct rlimit limit = {LIMIT_BYTES, LIMIT_BYTES};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  for (int round = 0; round < ROUNDS; round++) {
    void **head = NULL;
    long n = 0;
    errno = 0;
    for (void **p; (p = malloc(BLOCK_BYTES)) != NULL; n++) {
      *p = head;
      head = p;
    }
    if (errno != ENOMEM || n < 100000) return 2;
    while (head != NULL) {
      void *next = *head;
      free(head);
      head = next;
    }
    void *again = malloc(1000);
    if (again == NULL) return 3;
    free(again);
  }
  return 0;
}
