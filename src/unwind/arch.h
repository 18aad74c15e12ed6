/* SPDX-License-Identifier: MIT
 * arch.h - what the unwinder must know about the processor: DWARF register numbers, where the return address lives, the
 * signal frame, the thread pointer, how its own registers are captured. No state. Included by the unwind folder only. */
#ifndef HP_ARCH_H
#define HP_ARCH_H

#include "compiler.h"

#if defined(__x86_64__)
enum {
  HP_REG_FP = 6,     /* rbp */
  HP_REG_SP = 7,     /* rsp */
  HP_REG_RA = 16,    /* the return address column */
  HP_REG_COUNT = 17, /* registers whose rules are kept; vector registers are not */
};
/* Distance of the return address from the CFA on the fast path. */
#define HP_RA_SLOT(cfa, fp_words) ((cfa)-8)
/* Kernel's rt_sigframe as seen at the return into the restorer: sp is the ucontext. */
enum { HP_SIGNAL_SP_OFFSET = 160, HP_SIGNAL_PC_OFFSET = 168, HP_SIGNAL_FP_OFFSET = 120 };
/* User addresses have 47 bits: a return address is identified by a table index of 12 bits and 35 more. */
enum { HP_PC_BITS = 47, HP_PC_SHIFT = 0, HP_PC_STEP = 1 };
/* Frames up to 512 KiB have a fast rule; rbp is pushed among the first. */
enum { HP_RULE_CFA_BITS = 19, HP_RULE_CFA_SHARED_BITS = 0 };

static inline uintptr_t hp_arch_strip_pc(uintptr_t pc) { return pc; }
static inline uintptr_t hp_arch_thread_pointer(void) {
  uintptr_t tp;
  __asm__("movq %%fs:0, %0" : "=r"(tp));
  return tp;
}
/* The words of glibc's thread descriptor, which starts at the thread pointer. */
enum { HP_DESCRIPTOR_BEFORE_BYTES = 0, HP_DESCRIPTOR_AFTER_BYTES = 2048 };

/* Do the bytes before a return address look like a call? `before` holds the 8 bytes that end at it. */
static inline bool hp_arch_is_after_call(const uint8_t before[8]) {
  if (before[3] == 0xE8) return true; /* call rel32 */
  for (int at = 1; at <= 6; at++) {   /* call r/m: FF /2, two to seven bytes */
    if (before[at] == 0xFF && ((before[at + 1] >> 3) & 7) == 2) return true;
  }
  return false;
}
/* The kernel's signal restorer: mov $15, %rax; syscall. */
enum { HP_RESTORER_BYTES = 9 };
#define HP_RESTORER_CODE \
  { 0x48, 0xC7, 0xC0, 0x0F, 0x00, 0x00, 0x00, 0x0F, 0x05 }

/* Fills regs[] with the callee-saved registers as they are here, `known` with a bit for each, `pc` with this place. */
#define HP_ARCH_CAPTURE(regs, known, pc)                                                              \
  do {                                                                                                \
    uintptr_t pc_;                                                                                    \
    __asm__ volatile(                                                                                 \
        "movq %%rbx, 24(%1)\n\tmovq %%rbp, 48(%1)\n\tmovq %%rsp, 56(%1)\n\tmovq %%r12, 96(%1)\n\t"    \
        "movq %%r13, 104(%1)\n\tmovq %%r14, 112(%1)\n\tmovq %%r15, 120(%1)\n\tleaq 1f(%%rip), %0\n1:" \
        : "=&r"(pc_)                                                                                  \
        : "r"(regs)                                                                                   \
        : "memory");                                                                                  \
    (pc) = pc_;                                                                                       \
    (known) = 1u << 3 | 1u << HP_REG_FP | 1u << HP_REG_SP | 0xFu << 12;                               \
  } while (0)

#elif defined(__aarch64__)
enum {
  HP_REG_FP = 29,
  HP_REG_SP = 31,
  HP_REG_RA = 30, /* the link register is the column */
  HP_REG_COUNT = 32,
};
/* The fast path knows the frame record only: x29 and x30 side by side. */
#define HP_RA_SLOT(cfa, fp_words) ((cfa)-8 * (uintptr_t)(fp_words) + 8)
/* rt_sigframe: siginfo (128), ucontext: uc_mcontext at 176, fault_address, regs[31], sp, pc. */
enum {
  HP_SIGNAL_REGS_OFFSET = 128 + 176 + 8,
  HP_SIGNAL_FP_OFFSET = HP_SIGNAL_REGS_OFFSET + 29 * 8,
  HP_SIGNAL_SP_OFFSET = HP_SIGNAL_REGS_OFFSET + 31 * 8,
  HP_SIGNAL_PC_OFFSET = HP_SIGNAL_REGS_OFFSET + 32 * 8,
};
/* Instructions are four bytes apart, addresses have 48 bits. */
enum { HP_PC_BITS = 48, HP_PC_SHIFT = 2, HP_PC_STEP = 4 };
/* The frame record lies at the lower end of its frame, so its place needs as many bits as the size: up to 64 and 128 KiB. */
enum { HP_RULE_CFA_BITS = 17, HP_RULE_CFA_SHARED_BITS = 3 };

/* Without the signature that code built with -mbranch-protection puts into it: xpaclri, which does nothing on processors that do
 * not sign. (__builtin_extract_return_addr does nothing anywhere, and how many bits are the signature's is the kernel's choice.) */
static inline uintptr_t hp_arch_strip_pc(uintptr_t pc) {
  register uintptr_t lr __asm__("x30") = pc;
  __asm__("hint #7" : "+r"(lr));
  return lr;
}
static inline uintptr_t hp_arch_thread_pointer(void) { return (uintptr_t)__builtin_thread_pointer(); }
/* glibc's descriptor ends at the thread pointer. */
enum { HP_DESCRIPTOR_BEFORE_BYTES = 1536, HP_DESCRIPTOR_AFTER_BYTES = 0 };

static inline bool hp_arch_is_after_call(const uint8_t before[8]) {
  uint32_t word = (uint32_t)before[4] | (uint32_t)before[5] << 8 | (uint32_t)before[6] << 16 | (uint32_t)before[7] << 24;
  return (word & 0xFC000000u) == 0x94000000u     /* bl */
         || (word & 0xFFFFFC1Fu) == 0xD63F0000u  /* blr */
         || (word & 0xFEFFF800u) == 0xD63F0800u; /* blraa and the like */
}
/* mov x8, #139; svc #0 */
enum { HP_RESTORER_BYTES = 8 };
#define HP_RESTORER_CODE \
  { 0x68, 0x11, 0x80, 0xD2, 0x01, 0x00, 0x00, 0xD4 }

#define HP_ARCH_CAPTURE(regs, known, pc)                                                       \
  do {                                                                                         \
    uintptr_t pc_, sp_;                                                                        \
    __asm__ volatile(                                                                          \
        "stp x19, x20, [%2, #152]\n\tstp x21, x22, [%2, #168]\n\tstp x23, x24, [%2, #184]\n\t" \
        "stp x25, x26, [%2, #200]\n\tstp x27, x28, [%2, #216]\n\tstr x29, [%2, #232]\n\t"      \
        "mov %1, sp\n\tadr %0, 1f\n1:"                                                         \
        : "=&r"(pc_), "=&r"(sp_)                                                               \
        : "r"(regs)                                                                            \
        : "memory");                                                                           \
    (regs)[HP_REG_SP] = sp_;                                                                   \
    (pc) = pc_;                                                                                \
    (known) = 0x7FFu << 19 | 1u << HP_REG_SP;                                                  \
  } while (0)
#else
#error "heapprof knows x86_64 and aarch64"
#endif

#endif
