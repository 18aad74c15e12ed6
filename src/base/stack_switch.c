/* SPDX-License-Identifier: MIT
 * stack_switch.c - see stack_switch.h. A guard page lies below each stack. */
#include "stack_switch.h"

#include <sys/mman.h>

#include "compiler.h"
#include "sys.h"

enum { STACK_BYTES = 128 * 1024, GUARD_BYTES = 4096 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SWITCH_STACKS 0 /* the sanitizers keep shadow stacks of their own */
#else
#define SWITCH_STACKS 1
#endif

static HP_NOINLINE void switch_and_call(char *top, void (*function)(void *), void *argument) {
#if defined(__x86_64__)
  __asm__ volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[top], %%rsp\n\t"
      "callq *%[function]\n\t"
      "movq %%rbx, %%rsp"
      : "+D"(argument)
      : [top] "r"(top), [function] "r"(function)
      : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
        "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#elif defined(__aarch64__)
  register void *x0 __asm__("x0") = argument;
  __asm__ volatile(
      "mov x19, sp\n\t"
      "mov sp, %[top]\n\t"
      "blr %[function]\n\t"
      "mov sp, x19"
      : "+r"(x0)
      : [top] "r"(top), [function] "r"(function)
      : "x19", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
        "x18", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20",
        "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
#endif
}

char *hp_stack_map(void) {
  char *base = hp_sys_mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (hp_sys_failed(base)) return NULL;
  hp_syscall3(SYS_mprotect, base, GUARD_BYTES, PROT_NONE);
  return base + GUARD_BYTES + STACK_BYTES;
}

void hp_stack_unmap(char *top) {
  if (top != NULL) hp_sys_munmap(top - STACK_BYTES - GUARD_BYTES, STACK_BYTES + GUARD_BYTES);
}

void hp_stack_call(char *top, void (*function)(void *), void *argument) {
  if (SWITCH_STACKS && top != NULL) {
    switch_and_call(top, function, argument);
  } else {
    function(argument);
  }
}
