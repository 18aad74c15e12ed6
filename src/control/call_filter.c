/* SPDX-License-Identifier: MIT
 * call_filter.c - see call_filter.h. The filter is classic BPF over struct seccomp_data, which jumps forward only; the kernel allows
 * it loads of words, arithmetic, jumps and sixteen words of memory. */
#include "call_filter.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "filter_hook.h"
#include "hot.h"
#include "log.h"
#include "process.h"
#include "recorder.h"
#include "sampler.h"
#include "stack_bounds.h"
#include "sys.h"

#if defined(__x86_64__)
enum { ARCHITECTURE = (int)AUDIT_ARCH_X86_64 };
#else
enum { ARCHITECTURE = (int)AUDIT_ARCH_AARCH64 };
#endif

/* What a dump, its log line and the checks between dumps call, but for write, which every program calls; the last are called now and
 * then. */
static const int calls[] = {SYS_rt_sigaction, SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_openat,   SYS_fstat,
                            SYS_newfstatat,   SYS_close,         SYS_read,           SYS_pread64,  SYS_linkat,
                            SYS_renameat2,    SYS_unlinkat,      SYS_readlinkat,     SYS_fcntl,    SYS_flock,
                            SYS_fchmod,       SYS_getpid,        SYS_uname,          SYS_pselect6, SYS_ppoll,
                            SYS_sendfile,     SYS_mmap,          SYS_munmap,         SYS_madvise,  SYS_futex,
                            SYS_mprotect,     SYS_clock_gettime, SYS_nanosleep,      SYS_geteuid};

struct machine {
  uint32_t a, x;
  uint32_t memory[BPF_MEMWORDS];
};

static uint32_t compute(unsigned operation, uint32_t a, uint32_t b) {
  switch (operation) {
    case BPF_ADD: return a + b;
    case BPF_SUB: return a - b;
    case BPF_MUL: return a * b;
    case BPF_DIV: return b == 0 ? 0 : a / b;
    case BPF_OR: return a | b;
    case BPF_AND: return a & b;
    case BPF_XOR: return a ^ b;
    case BPF_LSH: return b < 32 ? a << b : 0;
    case BPF_RSH: return b < 32 ? a >> b : 0;
    default: return -a; /* BPF_NEG */
  }
}

static bool is_true(unsigned comparison, uint32_t a, uint32_t b) {
  switch (comparison) {
    case BPF_JEQ: return a == b;
    case BPF_JGT: return a > b;
    case BPF_JGE: return a >= b;
    default: return (a & b) != 0; /* BPF_JSET */
  }
}

static uint32_t load(const struct machine *m, const struct sock_filter *code, const struct seccomp_data *data) {
  uint32_t word = 0;
  switch (BPF_MODE(code->code)) {
    case BPF_IMM: return code->k;
    case BPF_MEM: return m->memory[code->k % BPF_MEMWORDS];
    case BPF_LEN: return sizeof *data;
    default:
      if (code->k <= sizeof *data - sizeof word) memcpy(&word, (const char *)data + code->k, sizeof word);
      return word;
  }
}

/* How far a jump goes on. */
static uint32_t distance(const struct machine *m, const struct sock_filter *code) {
  if (BPF_OP(code->code) == BPF_JA) return code->k;
  return is_true(BPF_OP(code->code), m->a, BPF_SRC(code->code) == BPF_X ? m->x : code->k) ? code->jt : code->jf;
}

static uint32_t answer(const struct sock_fprog *filter, const struct seccomp_data *data) {
  struct machine m = {0};
  for (uint32_t at = 0; at < filter->len; at++) {
    const struct sock_filter *code = &filter->filter[at];
    switch (BPF_CLASS(code->code)) {
      case BPF_LD: m.a = load(&m, code, data); break;
      case BPF_LDX: m.x = load(&m, code, data); break;
      case BPF_ST: m.memory[code->k % BPF_MEMWORDS] = m.a; break;
      case BPF_STX: m.memory[code->k % BPF_MEMWORDS] = m.x; break;
      case BPF_ALU: m.a = compute(BPF_OP(code->code), m.a, BPF_SRC(code->code) == BPF_X ? m.x : code->k); break;
      case BPF_JMP:
        if (distance(&m, code) >= filter->len - at) return SECCOMP_RET_ALLOW;
        at += distance(&m, code);
        break;
      case BPF_MISC:
        *(BPF_MISCOP(code->code) == BPF_TAX ? &m.x : &m.a) = BPF_MISCOP(code->code) == BPF_TAX ? m.a : m.x;
        break;
      default: return BPF_RVAL(code->code) == BPF_A ? m.a : code->k; /* BPF_RET */
    }
  }
  return SECCOMP_RET_ALLOW;
}

/* The kernel refuses a pointer that leads nowhere, with an error that the program may wait for. */
static bool is_filter(const struct sock_fprog *filter) {
  return hp_stack_probe_range((uintptr_t)filter, sizeof *filter) && filter->len <= BPF_MAXINSNS &&
         hp_stack_probe_range((uintptr_t)filter->filter, filter->len * sizeof filter->filter[0]);
}

static bool kills_for(const struct sock_fprog *filter, int call) {
  const struct seccomp_data data = {.nr = call, .arch = (uint32_t)ARCHITECTURE};
  uint32_t action = answer(filter, &data) & SECCOMP_RET_ACTION_FULL;
  return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD;
}

bool hp_call_filter_kills(const struct sock_fprog *filter) {
  if (!is_filter(filter)) return false;
  for (size_t i = 0; i < HP_ARRAY_LENGTH(calls); i++) {
    if (kills_for(filter, calls[i])) return true;
  }
  /* By which each sample asks for the name of its thread. */
  return (hp_recorder_labels() & HP_LABEL_THREAD) != 0 && kills_for(filter, SYS_prctl);
}

/* Filters are for who has CAP_SYS_ADMIN or can get no new privileges; others are refused them. Asked of a file, since another filter may
 * kill for the calls. */
static bool is_refused_filters(void) {
  static const char none_new[] = "\nNoNewPrivs:\t0\n", effective[] = "\nCapEff:\t";
  enum { DIGITS = 16, ADMIN_DIGIT = DIGITS - 1 - CAP_SYS_ADMIN / 4 };
  char text[1536];
  int fd = hp_sys_open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  long n = hp_sys_read(fd, text, sizeof text - 1);
  hp_sys_close(fd);
  text[n > 0 ? n : 0] = 0;
  const char *digits = strstr(text, effective);
  if (strstr(text, none_new) == NULL || digits == NULL) return false;
  digits += sizeof effective - 1;
  if (strnlen(digits, DIGITS) < DIGITS) return false;
  unsigned digit = (unsigned)(digits[ADMIN_DIGIT] <= '9' ? digits[ADMIN_DIGIT] - '0' : digits[ADMIN_DIGIT] - 'a' + 10);
  return (digit >> CAP_SYS_ADMIN % 4 & 1) == 0;
}

/* The line is written while it still can be. */
static bool before_filter(const struct sock_fprog *filter) {
  if (hp_process.is_inert || (filter != NULL && (!hp_call_filter_kills(filter) || is_refused_filters()))) return false;
  hp_log(HP_LOG_WARN, "%s takes a seccomp filter that kills for what a dump calls; no profile of it from here on",
         hp_process_executable_name());
  return true;
}

static uintptr_t filter_of_none; /* hp_hot's, before the first sample */

/* The frees of what was sampled pass too: a table that shrinks for them maps memory and gives it back. */
static void stop(void) {
  hp_process.is_inert = true;
  hp_sampler_set_rate(0);
  hp_store_relaxed(&hp_hot.filter, filter_of_none);
}

void hp_call_filter_start(void) {
  filter_of_none = hp_load_relaxed(&hp_hot.filter);
  hp_hook_before_filter = before_filter;
  hp_hook_filtered = stop;
}
