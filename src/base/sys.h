/* SPDX-License-Identifier: MIT
 * sys.h - raw system calls: no errno, no cancellation point, no lock, no libc symbol a program could replace.
 * Results: what the kernel returns, a negative errno on failure. All are async-signal-safe, from any thread. */
#ifndef HP_SYS_H
#define HP_SYS_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
static inline long hp_syscall6(long n, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
static inline long hp_syscall6(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "heapprof knows x86_64 and aarch64"
#endif

#define hp_syscall0(n) hp_syscall6(n, 0, 0, 0, 0, 0, 0)
#define hp_syscall1(n, a) hp_syscall6(n, (long)(a), 0, 0, 0, 0, 0)
#define hp_syscall2(n, a, b) hp_syscall6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define hp_syscall3(n, a, b, c) hp_syscall6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define hp_syscall4(n, a, b, c, d) hp_syscall6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static inline int hp_sys_openat(int dir, const char *path, int flags, unsigned mode) {
  return (int)hp_syscall4(SYS_openat, dir, path, flags, mode);
}
static inline int hp_sys_open(const char *path, int flags, unsigned mode) {
  return hp_sys_openat(AT_FDCWD, path, flags, mode);
}
static inline int hp_sys_close(int fd) { return (int)hp_syscall1(SYS_close, fd); }
static inline long hp_sys_read(int fd, void *to, size_t n) { return hp_syscall3(SYS_read, fd, to, n); }
static inline long hp_sys_pread(int fd, void *to, size_t n, int64_t at) { return hp_syscall4(SYS_pread64, fd, to, n, at); }
static inline long hp_sys_write(int fd, const void *from, size_t n) { return hp_syscall3(SYS_write, fd, from, n); }
static inline int hp_sys_fstat(int fd, struct stat *out) { return (int)hp_syscall2(SYS_fstat, fd, out); }
static inline int hp_sys_stat_at(const char *path, int flags, struct stat *out) {
  return (int)hp_syscall4(SYS_newfstatat, AT_FDCWD, path, out, flags);
}
static inline int hp_sys_unlink(const char *path) { return (int)hp_syscall3(SYS_unlinkat, AT_FDCWD, path, 0); }
static inline int hp_sys_rename(const char *from, const char *to) {
  return (int)hp_syscall6(SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0, 0);
}
static inline long hp_sys_readlink(const char *path, char *to, size_t n) {
  return hp_syscall4(SYS_readlinkat, AT_FDCWD, path, to, n);
}
static inline long hp_sys_getcwd(char *to, size_t n) { return hp_syscall2(SYS_getcwd, to, n); }
static inline void *hp_sys_mmap(void *at, size_t n, int prot, int flags, int fd, int64_t offset) {
  return (void *)hp_syscall6(SYS_mmap, (long)at, (long)n, prot, flags, fd, (long)offset);
}
static inline int hp_sys_munmap(void *at, size_t n) { return (int)hp_syscall2(SYS_munmap, at, n); }
static inline int hp_sys_madvise(void *at, size_t n, int advice) { return (int)hp_syscall3(SYS_madvise, at, n, advice); }
/* mmap's result is an error (then (long)p is the negative errno). */
static inline int hp_sys_failed(const void *p) { return (unsigned long)p > -4096UL; }
static inline int hp_sys_getpid(void) { return (int)hp_syscall0(SYS_getpid); }
static inline int hp_sys_gettid(void) { return (int)hp_syscall0(SYS_gettid); }
static inline long hp_sys_futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout) {
  return hp_syscall6(SYS_futex, (long)word, op, value, (long)timeout, 0, 0);
}
/* So long, or until a signal handler has run. ms < 1000. No cancellation point, unlike libc's. */
static inline void hp_sys_sleep_ms(int ms) {
  const struct timespec pause = {.tv_nsec = ms * 1000000L};
  hp_syscall2(SYS_nanosleep, &pause, NULL);
}
/* Every signal but the one by which the C library changes the ids of all threads (setuid, setgid ...): it waits until each
 * thread has answered, so one that keeps it blocked hangs the program. Its handler makes one system call. */
#define HP_SYS_SIGNALS_TO_BLOCK (~((uint64_t)1 << (33 - 1)))
/* `set` and `old` are kernel signal sets: 64 bits, signal n is bit n-1. */
static inline int hp_sys_sigprocmask(int how, const uint64_t *set, uint64_t *old) {
  return (int)hp_syscall4(SYS_rt_sigprocmask, how, set, old, 8);
}

#endif
