/* SPDX-License-Identifier: MIT
 * B8: a stack deeper than the limit ends in [truncated], at the root end; a call from a frame without unwind data has a row all
 * the same. Under HEAPPROF_MAX_DEPTH=16, and again at 1024. */
#include <sys/mman.h>

#include "behaviour.h"

NOINLINE static void *deep(int n) {
  void *volatile p = n == 0 ? malloc(11) : deep(n - 1);
  return p;
}

/* Code that nobody has unwind tables for; `function` goes into it.
 *   push rbp; mov rbp, rsp; mov rdi, 22; mov rax, function; call rax; pop rbp; ret
 *   stp x29, x30, [sp, #-16]!; mov x29, sp; mov x0, #22; ldr x9, function; blr x9; ldp x29, x30, [sp], #16; ret */
static void *generated_call(void *function) {
#if defined(__x86_64__)
  enum { FUNCTION_AT = 13 };
  unsigned char code[] = {0x55, 0x48, 0x89, 0xE5, 0x48, 0xC7, 0xC7, 22, 0,    0,    0,    0x48, 0xB8,
                          0,    0,    0,    0,    0,    0,    0,    0,  0xFF, 0xD0, 0x5D, 0xC3};
#else
  enum { FUNCTION_AT = 32 };
  unsigned code[] = {0xA9BF7BFD, 0x910003FD, 0xD28002C0, 0x580000A9, 0xD63F0120, 0xA8C17BFD, 0xD65F03C0, 0, 0, 0};
#endif
  char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy((char *)code + FUNCTION_AT, &function, sizeof function);
  memcpy(page, code, sizeof code);
  __builtin___clear_cache(page, page + sizeof code);
  return ((void *(*)(void))(uintptr_t)page)();
}

int main(int argc, char **argv) {
  (void)argc;
  void *a = deep(10000);
  void *b = generated_call((void *)(uintptr_t)malloc);
  CHECK_EQUAL(stats_now().stacks_truncated, 1);
  CHECK_EQUAL(dump_to(argv[1], "deep"), 0);
  free(a);
  free(b);
  return 0;
}
