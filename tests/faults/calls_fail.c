/* SPDX-License-Identifier: MIT
 * calls_fail.c - system calls that one loaded object makes itself fail on demand, and nobody else's: the program's own calls, the C
 * library's and the loader's go through. (strace's faults hit whoever comes, and cost a hundred times as much.)
 *
 *   LD_PRELOAD="libheapprof.so libcalls_fail.so" CALLS_FAIL=NUMBER:ERRNO:FIRST:LAST[,...] CALLS_FAIL_IN=libheapprof [CALLS_FAIL_SEEN=FILE]
 *
 * The FIRST-th to LAST-th call of the system call NUMBER, counted in each process, give ERRNO; if there was one, FILE is made. A second
 * such plan may stand behind a comma; FILE is for the first.
 *
 * Status   79: the code lies across a border of 4 GiB, which the filter cannot express; the next run has other addresses.
 * How      a seccomp filter traps the call when the instruction that makes it lies in the object's code; the handler of SIGSYS
 *          answers, or makes the call from a stub that the filter lets pass. SIGSYS has to stay unblocked, so the calls that set
 *          masks are trapped from everywhere and lose that bit.
 * Not for  programs that exec: the filter stays, the handler does not. The library under test sees Seccomp: 2 in its status. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { PLANS_MAX = 2, OTHER_LAYOUT = 79 };
static struct plan {
  long number, error;
  unsigned first, last;
  unsigned calls; /* atomic */
} plans[PLANS_MAX];
static uintptr_t code_start, code_end; /* the code whose calls fail */
static const char *seen_file;

/* ---- the stub: system calls from a place that the filter knows ---- */
long calls_fail_stub(long number, const long *arguments);
extern const char calls_fail_stub_end[];
#if defined(__x86_64__)
__asm__(
    ".text\n.p2align 4\n.globl calls_fail_stub\n.hidden calls_fail_stub\n.hidden calls_fail_stub_end\n"
    ".type calls_fail_stub,@function\ncalls_fail_stub:\n"
    "mov %rdi,%rax\nmov %rsi,%r11\nmov (%r11),%rdi\nmov 8(%r11),%rsi\nmov 16(%r11),%rdx\nmov 24(%r11),%r10\n"
    "mov 32(%r11),%r8\nmov 40(%r11),%r9\nsyscall\nret\n"
    ".globl calls_fail_stub_end\ncalls_fail_stub_end:\nnop\n");
#define REGISTER_ARGUMENTS(m) \
  { (m)[REG_RDI], (m)[REG_RSI], (m)[REG_RDX], (m)[REG_R10], (m)[REG_R8], (m)[REG_R9] }
#define REGISTERS(context) ((context)->uc_mcontext.gregs)
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
__asm__(
    ".text\n.p2align 4\n.globl calls_fail_stub\n.hidden calls_fail_stub\n.hidden calls_fail_stub_end\n"
    ".type calls_fail_stub,%function\ncalls_fail_stub:\n"
    "mov x8,x0\nmov x9,x1\nldp x0,x1,[x9]\nldp x2,x3,[x9,16]\nldp x4,x5,[x9,32]\nsvc 0\nret\n"
    ".globl calls_fail_stub_end\ncalls_fail_stub_end:\nnop\n");
#define REGISTER_ARGUMENTS(m) \
  { (long)(m)[0], (long)(m)[1], (long)(m)[2], (long)(m)[3], (long)(m)[4], (long)(m)[5] }
#define REGISTERS(context) ((context)->uc_mcontext.regs)
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#endif

/* ---- the handler ---- */
static const uint64_t SIGSYS_BIT = (uint64_t)1 << (SIGSYS - 1);

/* The mask that counts is the interrupted code's, which comes back when the handler returns. */
static long set_mask(ucontext_t *context, const long *arguments) {
  uint64_t now, wanted;
  memcpy(&now, &context->uc_sigmask, sizeof now);
  if (arguments[2] != 0) memcpy((void *)arguments[2], &now, sizeof now);
  if (arguments[1] == 0) return 0;
  memcpy(&wanted, (const void *)arguments[1], sizeof wanted);
  if (arguments[0] == SIG_BLOCK) {
    now |= wanted;
  } else if (arguments[0] == SIG_UNBLOCK) {
    now &= ~wanted;
  } else {
    now = wanted;
  }
  now &= ~SIGSYS_BIT;
  memcpy(&context->uc_sigmask, &now, sizeof now);
  return 0;
}

static long set_action(const long *arguments) {
  struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
  } action;
  long changed[6];
  memcpy(changed, arguments, sizeof changed);
  if (arguments[1] != 0) {
    memcpy(&action, (const void *)arguments[1], sizeof action);
    action.mask &= ~SIGSYS_BIT;
    changed[1] = (long)&action;
  }
  return calls_fail_stub(SYS_rt_sigaction, changed);
}

static void note_seen(void) {
  if (seen_file == NULL) return;
  const long open_arguments[6] = {AT_FDCWD, (long)seen_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600};
  const long close_arguments[6] = {calls_fail_stub(SYS_openat, open_arguments)};
  calls_fail_stub(SYS_close, close_arguments);
}

/* The error that this call is to give; 0: none. */
static long planned_error(long number, uintptr_t from) {
  if (from < code_start || from > code_end) return 0;
  for (int i = 0; i < PLANS_MAX; i++) {
    if (plans[i].error == 0 || plans[i].number != number) continue;
    unsigned n = __atomic_add_fetch(&plans[i].calls, 1, __ATOMIC_RELAXED);
    if (n < plans[i].first || n > plans[i].last) return 0;
    if (i == 0) note_seen();
    return plans[i].error;
  }
  return 0;
}

static void on_trap(int signal_number, siginfo_t *info, void *context_of) {
  (void)signal_number;
  ucontext_t *context = context_of;
  const long arguments[6] = REGISTER_ARGUMENTS(REGISTERS(context));
  long result = -planned_error(info->si_syscall, (uintptr_t)info->si_call_addr);
  if (result != 0) {
    /* so be it */
  } else if (info->si_syscall == SYS_rt_sigprocmask) {
    result = set_mask(context, arguments);
  } else if (info->si_syscall == SYS_rt_sigaction) {
    result = set_action(arguments);
  } else {
    result = calls_fail_stub(info->si_syscall, arguments);
  }
  RESULT(context) = (__typeof__(RESULT(context)))result;
}

/* ---- the filter ---- */
static int find_code(struct dl_phdr_info *info, size_t size, void *name) {
  (void)size;
  if (strstr(info->dlpi_name, name) == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
    code_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    code_end = code_start + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

/* If the caller is in [start, end): `then`; else the next filter. Both ends have the same upper half. */
#define IF_CALLER_IN(start, end, then)                                                        \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4), \
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)((uint64_t)(start) >> 32), 0, 4),         \
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)), \
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)(start), 0, 2),                           \
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)(end), 1, 0), BPF_STMT(BPF_RET | BPF_K, then)

static bool in_one_half(uintptr_t start, uintptr_t end) { return (uint64_t)start >> 32 == (uint64_t)end >> 32; }

static void install(void) {
  struct sigaction action;
  uintptr_t stub = (uintptr_t)calls_fail_stub, stub_end = (uintptr_t)calls_fail_stub_end;
  if (!in_one_half(code_start, code_end) || !in_one_half(stub, stub_end)) _Exit(OTHER_LAYOUT); /* one run in thousands */
  struct sock_filter code[] = {
      IF_CALLER_IN(stub, stub_end, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)plans[0].number, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)plans[1].number, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      IF_CALLER_IN(code_start, code_end, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSYS, &action, NULL);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _Exit(77);
}

__attribute__((constructor)) static void calls_fail_start(void) {
  const char *text = getenv("CALLS_FAIL"), *object = getenv("CALLS_FAIL_IN");
  if (text == NULL || object == NULL) return;
  seen_file = getenv("CALLS_FAIL_SEEN");
  plans[1].number = -1;
  for (int i = 0; i < PLANS_MAX && text != NULL; i++) {
    struct plan *p = &plans[i];
    if (sscanf(text, "%ld:%ld:%u:%u", &p->number, &p->error, &p->first, &p->last) != 4) _Exit(78);
    text = strchr(text, ',');
    if (text != NULL) text++;
  }
  if (dl_iterate_phdr(find_code, (void *)object) == 0) _Exit(78);
  install();
}
