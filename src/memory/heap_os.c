/* SPDX-License-Identifier: MIT
 * heap_os.c - what jemalloc calls instead of the C library (CMakeLists.txt lists the names): it reads no environment and no file,
 * starts no thread, and maps memory by raw calls. (The functions have no header: only the archive calls them.) */
#include "heap_os.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"
#include "libc_names.h"
#include "lock.h"
#include "mathfn.h"
#include "sys.h"

char *hp_heap_os_getenv(const char *name);
ssize_t hp_heap_os_readlink(const char *path, char *to, size_t n);
long hp_heap_os_syscall(long n, long a, long b, long c);
long hp_heap_os_sysconf(int name);
int hp_heap_os_sched_getaffinity(int pid, size_t n, void *set);
int hp_heap_os_pthread_atfork(void (*a)(void), void (*b)(void), void (*c)(void));
void *hp_heap_os_dlsym(void *handle, const char *name);
void *hp_heap_os_mmap(void *at, size_t n, int prot, int flags, int fd, long offset);
int hp_heap_os_munmap(void *at, size_t n);
int hp_heap_os_madvise(void *at, size_t n, int advice);
double hp_heap_os_round(double x);

char *hp_heap_os_getenv(const char *name) {
  (void)name;
  return NULL;
}

/* /etc/malloc.conf is the program's, not ours. */
ssize_t hp_heap_os_readlink(const char *path, char *to, size_t n) {
  (void)path;
  (void)to;
  (void)n;
  return -1;
}

/* jemalloc reads /proc/sys/vm/overcommit_memory at its start and writes messages to stderr. We open nothing before the first
 * dump and print nothing of its: the file answers "1" (mappings are committed when touched). */
long hp_heap_os_syscall(long n, long a, long b, long c) {
  enum { PRETENDED_FD = 1 << 20 };
#ifdef SYS_open
  if (n == SYS_open) return PRETENDED_FD;
#endif
  if (n == SYS_openat) return PRETENDED_FD;
  if (n == SYS_read && a == PRETENDED_FD) {
    *(char *)b = '1';
    return 1;
  }
  if (n == SYS_write) return c;
  return 0;
}

long hp_heap_os_sysconf(int name) {
  if (name == _SC_PAGESIZE) return (long)getauxval(AT_PAGESZ);
  if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF) return 1;
  return -1;
}

int hp_heap_os_sched_getaffinity(int pid, size_t n, void *set) {
  (void)pid;
  (void)n;
  (void)set;
  return -1;
}

/* Ours are called in the right order by control/fork.c. */
int hp_heap_os_pthread_atfork(void (*a)(void), void (*b)(void), void (*c)(void)) {
  (void)a;
  (void)b;
  (void)c;
  return 0;
}

void *hp_heap_os_dlsym(void *handle, const char *name) {
  (void)handle;
  (void)name;
  return NULL;
}

/* At its start jemalloc tries madvise on a page that it maps and does not look whether it got it. */
enum { TRIAL_PAGE_BYTES = 4096 };
static char trial_page[TRIAL_PAGE_BYTES] __attribute__((aligned(TRIAL_PAGE_BYTES)));

void *hp_heap_os_mmap(void *at, size_t n, int prot, int flags, int fd, long offset) {
  void *p = hp_sys_mmap(at, n, prot, flags, fd, offset);
  if (!hp_sys_failed(p)) return p;
  if (n == TRIAL_PAGE_BYTES && !hp_heap_is_started()) return trial_page;
  errno = (int)-(long)p;
  return MAP_FAILED;
}

static int with_errno(int result) {
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

int hp_heap_os_munmap(void *at, size_t n) { return at == trial_page ? 0 : with_errno(hp_sys_munmap(at, n)); }
int hp_heap_os_madvise(void *at, size_t n, int advice) { return with_errno(hp_sys_madvise(at, n, advice)); }

double hp_heap_os_round(double x) { return (double)(int64_t)(x < 0 ? x - 0.5 : x + 0.5); }

/* jemalloc's mutexes are our locks, without the count of those held: it makes them anew in a forked child, without a release.
 * (The program's pthread_mutex_* may be interposed, by something that allocates.) */
int hp_heap_os_mutex_init(void *mutex, const void *attributes);
int hp_heap_os_mutex_trylock(void *mutex);
int hp_heap_os_mutex_lock(void *mutex);
int hp_heap_os_mutex_unlock(void *mutex);

int hp_heap_os_mutex_init(void *mutex, const void *attributes) {
  (void)attributes;
  *(struct hp_lock *)mutex = (struct hp_lock){0};
  return 0;
}
int hp_heap_os_mutex_trylock(void *mutex) { return hp_lock_grab(mutex) ? 0 : EBUSY; }
int hp_heap_os_mutex_lock(void *mutex) {
  if (!hp_lock_grab(mutex)) hp_lock_acquire_slow(mutex);
  return 0;
}
int hp_heap_os_mutex_unlock(void *mutex) {
  hp_lock_drop(mutex);
  return 0;
}

/* At the end of a thread jemalloc takes the thread's record, which is in its TLS, out of a list. Where the program has no
 * libpthread yet (glibc < 2.34) that is put off until it has: the record of the main thread may stay. */
HP_OLD_NAME(pthread_key_create, "2.2.5");
HP_OLD_NAME(pthread_setspecific, "2.2.5");
static hp_heap_key_create *key_create = pthread_key_create;
static hp_heap_set_specific *set_specific = pthread_setspecific; /* atomic */
static pthread_key_t *put_off_key;
static void (*put_off_end)(void *);

int hp_heap_os_key_create(pthread_key_t *out_key, void (*end)(void *));
int hp_heap_os_setspecific(pthread_key_t key, const void *record);

int hp_heap_os_key_create(pthread_key_t *out_key, void (*end)(void *)) {
  if (key_create != NULL) return key_create(out_key, end);
  put_off_key = out_key;
  put_off_end = end;
  return 0;
}
int hp_heap_os_setspecific(pthread_key_t key, const void *record) {
  hp_heap_set_specific *set = hp_load_acquire(&set_specific);
  return set == NULL ? 0 : set(key, record);
}

bool hp_heap_has_thread_ends(void) { return hp_load_acquire(&set_specific) != NULL; }

void hp_heap_set_thread_ends(hp_heap_key_create *create, hp_heap_set_specific *set) {
  if (create == NULL || set == NULL) return;
  hp_lock_acquire(&hp_heap_start_lock);
  key_create = create;
  bool is_put_off = put_off_key != NULL && put_off_end != NULL;
  if (!is_put_off || create(put_off_key, put_off_end) == 0) hp_store_release(&set_specific, set);
  put_off_key = NULL;
  hp_lock_release(&hp_heap_start_lock);
}

/* Background threads, dumps of its statistics, sbrk: features that are off, asked for nothing but their set-up. (Each import
 * less is a symbol the loader need not look up at every exec.) */
static long absent(void) { return 0; }
#define ABSENT(name)                   \
  long hp_heap_os_absent_##name(void); \
  long hp_heap_os_absent_##name(void) { return absent(); }
ABSENT(pthread_mutexattr_init)
ABSENT(pthread_mutexattr_settype)
ABSENT(pthread_mutexattr_destroy)
ABSENT(unwind_backtrace)
ABSENT(unwind_get_ip)
ABSENT(pthread_create)
ABSENT(pthread_join)
ABSENT(pthread_cond_init)
ABSENT(pthread_cond_signal)
ABSENT(pthread_cond_timedwait)
ABSENT(pthread_cond_wait)
ABSENT(pthread_getname_np)
ABSENT(pthread_setname_np)
ABSENT(pthread_sigmask)
ABSENT(sched_setaffinity)
ABSENT(sigfillset)
ABSENT(creat)
ABSENT(sbrk)
ABSENT(atexit)
