/* SPDX-License-Identifier: MIT
 * B8: a stack deeper than the limit ends in [truncated], at the root end; a call from a frame without unwind data has a row all
 * the same. Under HEAPPROF_MAX_DEPTH=16, and again at 1024. */
#include <sys/mman.h>

#include "behaviour.h"

NOINLINE static void *deep(int n) {
  void *volatile p = n == 0 ? malloc(11) : deep(n - 1);
  return p;
}

/* push rbp; mov rbp, rsp; mov rdi, 22; call rax; pop rbp; ret - code nobody has unwind tables for. */
static void *generated_call(void *function) {
  unsigned char code[] = {0x55, 0x48, 0x89, 0xE5, 0x48, 0xC7, 0xC7, 22, 0,    0,    0,    0x48, 0xB8,
                          0,    0,    0,    0,    0,    0,    0,    0,  0xFF, 0xD0, 0x5D, 0xC3};
  char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(&code[13], &function, sizeof function);
  memcpy(page, code, sizeof code);
  return ((void *(*)(void))(uintptr_t)page)();
}

int main(int argc, char **argv) {
  (void)argc;
  void *a = deep(10000);
#if defined(__x86_64__)
  void *b = generated_call((void *)(uintptr_t)malloc);
#else
  void *b = malloc(22);
#endif
  CHECK_EQUAL(stats_now().stacks_truncated, 1);
  CHECK_EQUAL(dump_to(argv[1], "deep"), 0);
  free(a);
  free(b);
  return 0;
}
