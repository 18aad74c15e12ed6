/* SPDX-License-Identifier: MIT
 * sandboxed.c - a program that takes a seccomp filter (by prctl, as sshd does) goes on: `kills` forbids, by death, nearly everything
 * that a dump calls, so there is none, and nothing else of ours may be called either; `kills-all` also what malloc calls, and gives
 * back what it had before; `spares` forbids what nobody calls, and the profile is there; `refuses` has an error for what the tables
 * call when they shrink, and no errno of it comes out of a realloc; `kills-for CALL` forbids one call by death; `not-allowed` may take none, goes on without, and is profiled
 * without a word. Status 0; 77 without seccomp. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

static struct sock_filter kills[] = {
    LOAD_NUMBER,          ALLOW(SYS_write),         ALLOW(SYS_mmap),
    ALLOW(SYS_munmap),    ALLOW(SYS_mremap),        ALLOW(SYS_madvise),
    ALLOW(SYS_brk),       ALLOW(SYS_futex),         ALLOW(SYS_exit_group),
    ALLOW(SYS_getrandom), ALLOW(SYS_clock_gettime), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
static struct sock_filter kills_all[] = {LOAD_NUMBER, ALLOW(SYS_write), ALLOW(SYS_brk), ALLOW(SYS_exit_group),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
static struct sock_filter refuses[] = {LOAD_NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
                                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static struct sock_filter spares[] = {LOAD_NUMBER,
                                      BPF_STMT(BPF_ST, 3),
                                      BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),
                                      BPF_STMT(BPF_MISC | BPF_TXA, 0),
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_acct, 1, 0),
                                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};

static struct sock_filter kills_for[] = {LOAD_NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

enum { BLOCKS = 100000 };
static void *volatile blocks[BLOCKS];
static void take_memory(void) {
  for (size_t i = 0; i < BLOCKS; i++) blocks[i] = malloc(i % 100 + 1);
}
static void give_memory_back(void) {
  for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
}

static int give_memory_back_by_realloc(void) {
  for (size_t i = 0; i < BLOCKS; i++) {
    errno = 0;
    void *volatile none = realloc(blocks[i], 0);
    if (none != NULL || errno != 0) return 4;
  }
  return 0;
}

/* What is no filter is refused as ever. */
static int refuses_what_is_none(void) {
  struct sock_filter *end = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (end == MAP_FAILED || munmap((char *)end + 4096, 4096) != 0) return 0;
  end += 4096 / sizeof *end - 2; /* two fit */
  end[0] = kills[0];
  end[1] = kills[1];
  struct sock_fprog nowhere = {10, (struct sock_filter *)(uintptr_t)16}, half = {10, end}, empty = {0, kills};
  void *const none[] = {NULL, (void *)(uintptr_t)16, (void *)UINTPTR_MAX, end + 2, &nowhere, &half};
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, none[i]) != -1 || errno != EFAULT) return 0;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty) == -1 && errno == EINVAL;
}

int main(int argc, char **argv) {
  struct sock_fprog program = {sizeof kills / sizeof kills[0], kills};
  if (argc < 2) return 2;
  if (strcmp(argv[1], "spares") == 0) program = (struct sock_fprog){sizeof spares / sizeof spares[0], spares};
  bool refuses_madvise = strcmp(argv[1], "refuses") == 0;
  if (refuses_madvise) program = (struct sock_fprog){sizeof refuses / sizeof refuses[0], refuses};
  bool kills_malloc = strcmp(argv[1], "kills-all") == 0;
  if (kills_malloc) program = (struct sock_fprog){sizeof kills_all / sizeof kills_all[0], kills_all};
  if (strcmp(argv[1], "kills-for") == 0) {
    kills_for[1].k = strcmp(argv[2], "mprotect") == 0 ? SYS_mprotect : SYS_prctl;
    program = (struct sock_fprog){sizeof kills_for / sizeof kills_for[0], kills_for};
  }
  take_memory();
  if (strcmp(argv[1], "not-allowed") == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) return 77;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return 77;
    return errno == EACCES ? 0 : 5;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_GET_SECCOMP) < 0) return 77;
  if (!refuses_what_is_none()) return 3;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 77;
  if (refuses_madvise) return give_memory_back_by_realloc();
  give_memory_back();
  if (kills_malloc) return 0;
  take_memory();
  give_memory_back();
  return 0;
}
