/* SPDX-License-Identifier: MIT
 * heap.c - see heap.h. jemalloc's archive is linked in with every name of its own prefixed hpje_ and the calls below taken
 * over (CMakeLists.txt lists them): it reads no environment and no file, starts no thread, and maps memory by raw calls. */
#include "heap.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libc_names.h"
#include "lock.h"
#include "mathfn.h"
#include "stack_switch.h"
#include "sys.h"

void *hpje_malloc(size_t size);
void *hpje_aligned_alloc(size_t alignment, size_t size);
void hpje_free(void *ptr);
size_t hpje_malloc_usable_size(const void *ptr);
int hpje_mallctl(const char *name, void *old, size_t *old_size, void *new_value, size_t new_size);
void hpje_je_jemalloc_prefork(void);
void hpje_je_jemalloc_postfork_parent(void);
void hpje_je_jemalloc_postfork_child(void);

/* One arena, no per-thread cache (a table grows by whole chunks, seldom); freed pages go back when a table that shrank says
 * so (hp_heap_trim), not at every free. */
extern const char *hpje_malloc_conf;
const char *hpje_malloc_conf =
    "narenas:1,tcache:false,background_thread:false,dirty_decay_ms:-1,muzzy_decay_ms:0,dss:disabled,thp:never";

static size_t ceiling_bytes = SIZE_MAX; /* written once at start-up */
static size_t used_bytes;               /* atomic */
static bool is_used;                    /* atomic: jemalloc has been initialised, so it has to be told of a fork */
static struct hp_lock first_use_lock;
static uint32_t *own_mark; /* atomic; in a page that the kernel zeroes in a forked child; NULL: none could be had */

void hp_memory_set_ceiling(size_t bytes) { hp_store_relaxed(&ceiling_bytes, bytes); }

size_t hp_memory_used(void) { return hp_load_relaxed(&used_bytes); }

bool hp_memory_reserve(size_t size) {
  size_t before = hp_add_relaxed(&used_bytes, size);
  if (before + size <= hp_load_relaxed(&ceiling_bytes) && before + size >= before) return true;
  hp_memory_release(size);
  return false;
}

void hp_memory_release(size_t size) { __atomic_fetch_sub(&used_bytes, size, __ATOMIC_RELAXED); }

/* The budget is asked for `size` and then charged what jemalloc really gave. */
static void *charge(void *ptr, size_t size) {
  if (ptr == NULL) {
    hp_memory_release(size);
    return NULL;
  }
  hp_add_relaxed(&used_bytes, hpje_malloc_usable_size(ptr) - size);
  return ptr;
}

/* jemalloc's own mutexes count as locks of ours (thread_state.h). */
static void *allocate(size_t alignment, size_t size) {
  hp_thread_lock_begin();
  void *ptr = charge(alignment == 0 ? hpje_malloc(size) : hpje_aligned_alloc(alignment, size), size);
  hp_thread_lock_end();
  return ptr;
}

static void initialise(void *out_is_done) {
  void *block = hpje_malloc(1);
  *(bool *)out_is_done = block != NULL;
  hpje_free(block);
}

static void map_own_mark(void) {
  enum { MARK_BYTES = 4096, WIPE_ON_FORK = 18 /* MADV_WIPEONFORK */ };
  uint32_t *mark = hp_sys_mmap(NULL, MARK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (hp_sys_failed(mark)) return;
  if (hp_sys_madvise(mark, MARK_BYTES, WIPE_ON_FORK) != 0) {
    hp_sys_munmap(mark, MARK_BYTES);
    return;
  }
  *mark = 1;
  hp_store_release(&own_mark, mark);
}

bool hp_memory_is_copy(void) {
  const uint32_t *mark = hp_load_acquire(&own_mark);
  return mark != NULL && hp_load_relaxed(mark) == 0;
}

void hp_memory_claim(void) {
  uint32_t *mark = hp_load_acquire(&own_mark);
  if (mark != NULL) hp_store_relaxed(mark, 1);
}

/* jemalloc's start takes 6 KiB of stack, more than a thread of the smallest size may have left. False: the system had no memory;
 * jemalloc is to be left alone until a start has succeeded, and is started anew at the next call. */
static HP_COLD bool first_use(void) {
  hp_lock_acquire(&first_use_lock);
  bool is_done = hp_load_relaxed(&is_used);
  char *top = is_done ? NULL : hp_stack_map();
  if (top != NULL) {
    hp_stack_call(top, initialise, &is_done);
    hp_stack_unmap(top);
    if (is_done) map_own_mark();
    hp_store_release(&is_used, is_done);
  }
  hp_lock_release(&first_use_lock);
  return is_done;
}

/* May jemalloc be asked for `size` bytes, which are then taken from the budget? */
static bool begin(size_t size) {
  if (hp_memory_above_eighths(HP_HEAP_EIGHTHS) || !hp_memory_reserve(size)) return false;
  if (HP_LIKELY(hp_load_acquire(&is_used)) || first_use()) return true;
  hp_memory_release(size);
  return false;
}

void *hp_heap_alloc(size_t size) { return begin(size) ? allocate(0, size) : NULL; }

void *hp_heap_alloc_aligned_zero(size_t alignment, size_t size) {
  if (!begin(size)) return NULL;
  void *ptr = allocate(alignment, size);
  if (ptr != NULL) __builtin_memset(ptr, 0, size);
  return ptr;
}

void hp_heap_free(void *ptr) {
  if (ptr == NULL) return;
  hp_thread_lock_begin();
  hp_memory_release(hpje_malloc_usable_size(ptr));
  hpje_free(ptr);
  hp_thread_lock_end();
}

void hp_heap_trim(void) {
  if (!hp_load_relaxed(&is_used)) return;
  hp_thread_lock_begin();
  hpje_mallctl("arena.0.purge", NULL, NULL, NULL, 0);
  hp_thread_lock_end();
}

bool hp_memory_above_eighths(unsigned eighths) { return hp_memory_used() / eighths >= hp_load_relaxed(&ceiling_bytes) / 8; }

/* ---- fork ---- */
void hp_heap_lock_all(void) {
  hp_lock_acquire(&first_use_lock);
  if (hp_load_relaxed(&is_used)) hpje_je_jemalloc_prefork();
}
void hp_heap_unlock_all_parent(void) {
  hp_lock_release(&first_use_lock);
  if (hp_load_relaxed(&is_used)) hpje_je_jemalloc_postfork_parent();
}
void hp_heap_unlock_all_child(void) {
  hp_lock_release(&first_use_lock);
  if (hp_load_relaxed(&is_used)) hpje_je_jemalloc_postfork_child();
}

/* ---- what jemalloc calls instead of libc ---- */
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
  if (n == TRIAL_PAGE_BYTES && !hp_load_relaxed(&is_used)) return trial_page;
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
  hp_lock_acquire(&first_use_lock);
  key_create = create;
  bool is_put_off = put_off_key != NULL && put_off_end != NULL;
  if (!is_put_off || create(put_off_key, put_off_end) == 0) hp_store_release(&set_specific, set);
  put_off_key = NULL;
  hp_lock_release(&first_use_lock);
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
