// SPDX-License-Identifier: MIT
// ledger.cc - a random workload over every entry point on four threads, kept in a shadow ledger by call site.
// ledger CALLS SEED [no-pvalloc]: prints "site alloc_objects alloc_bytes inuse_objects inuse_bytes" for each site; the profile written at
// exit at rate 1 must say the same, to the byte (ledger.py). Each site is a function of its own, so a row is told by its leaf.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <new>

#define SITE extern "C" __attribute__((noinline, used))
#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory") /* no tail call: the site's frame stays */

enum Kind { MALLOC, NEW, NEW_ARRAY, NEW_ALIGNED, NEW_ARRAY_ALIGNED, MALLOCX };
static const std::align_val_t ALIGNMENT{64};

SITE void *site_malloc(size_t n) { void *p = malloc(n); KEEP(p); return p; }
SITE void *site_calloc(size_t n) { void *p = calloc(n, 3); KEEP(p); return p; }
SITE void *site_realloc_null(size_t n) { void *p = realloc(nullptr, n + 1); KEEP(p); return p; }
SITE void *site_reallocarray_null(size_t n) { void *p = reallocarray(nullptr, n + 1, 2); KEEP(p); return p; }
SITE void *site_posix_memalign(size_t n) { void *p = nullptr; if (posix_memalign(&p, 128, n)) abort(); KEEP(p); return p; }
SITE void *site_aligned_alloc(size_t n) { void *p = aligned_alloc(64, (n + 63) / 64 * 64); KEEP(p); return p; }
SITE void *site_memalign(size_t n) { void *p = memalign(32, n); KEEP(p); return p; }
SITE void *site_valloc(size_t n) { void *p = valloc(n); KEEP(p); return p; }
SITE void *site_pvalloc(size_t n) { void *p = pvalloc(n + 1); KEEP(p); return p; }
SITE void *site_new(size_t n) { void *p = ::operator new(n); KEEP(p); return p; }
SITE void *site_new_array(size_t n) { void *p = ::operator new[](n); KEEP(p); return p; }
SITE void *site_new_nothrow(size_t n) { void *p = ::operator new(n, std::nothrow); KEEP(p); return p; }
SITE void *site_new_array_nothrow(size_t n) { void *p = ::operator new[](n, std::nothrow); KEEP(p); return p; }
SITE void *site_new_aligned(size_t n) { void *p = ::operator new(n, ALIGNMENT); KEEP(p); return p; }
SITE void *site_new_array_aligned(size_t n) { void *p = ::operator new[](n, ALIGNMENT); KEEP(p); return p; }
SITE void *site_new_aligned_nothrow(size_t n) { void *p = ::operator new(n, ALIGNMENT, std::nothrow); KEEP(p); return p; }
SITE void *site_new_array_aligned_nothrow(size_t n) { void *p = ::operator new[](n, ALIGNMENT, std::nothrow); KEEP(p); return p; }
SITE void *site_realloc(void *o, size_t n) { void *p = realloc(o, n); KEEP(p); return p; }
SITE void *site_reallocarray(void *o, size_t n) { void *p = reallocarray(o, n, 2); KEEP(p); return p; }

// jemalloc's family: the profiler has the names whatever is behind it.
#define WEAK __attribute__((weak))
extern "C" {
WEAK void *mallocx(size_t, int);
WEAK void *rallocx(void *, size_t, int);
WEAK size_t xallocx(void *, size_t, size_t, int);
WEAK size_t sallocx(const void *, int);
WEAK size_t nallocx(size_t, int);
WEAK void dallocx(void *, int);
WEAK void sdallocx(void *, size_t, int);
WEAK int mallctl(const char *, void *, size_t *, void *, size_t); // jemalloc's alone
}
enum { ALIGN_64 = 6, ZERO = 0x40 };
SITE void *site_mallocx(size_t n) { void *p = mallocx(n + 1, 0); KEEP(p); return p; }
SITE void *site_mallocx_zero(size_t n) { void *p = mallocx(n + 1, ALIGN_64 | ZERO); KEEP(p); return p; }
SITE void *site_rallocx(void *o, size_t n) { void *p = rallocx(o, n, 0); KEEP(p); return p; }
SITE size_t site_xallocx(void *o, size_t n) { size_t got = xallocx(o, n, 0, 0); KEEP(got); return got; }

struct Site {
  const char *name;
  void *(*alloc)(size_t);
  Kind kind;
  size_t (*requested)(size_t);
};
static size_t same(size_t n) { return n; }
static const Site sites[] = {
    {"site_malloc", site_malloc, MALLOC, same},
    {"site_calloc", site_calloc, MALLOC, [](size_t n) { return n * 3; }},
    {"site_realloc_null", site_realloc_null, MALLOC, [](size_t n) { return n + 1; }},
    {"site_reallocarray_null", site_reallocarray_null, MALLOC, [](size_t n) { return (n + 1) * 2; }},
    {"site_posix_memalign", site_posix_memalign, MALLOC, same},
    {"site_aligned_alloc", site_aligned_alloc, MALLOC, [](size_t n) { return (n + 63) / 64 * 64; }},
    {"site_memalign", site_memalign, MALLOC, same},
    {"site_valloc", site_valloc, MALLOC, same},
    {"site_pvalloc", site_pvalloc, MALLOC, [](size_t n) { return n + 1; }},
    {"site_new", site_new, NEW, same},
    {"site_new_array", site_new_array, NEW_ARRAY, same},
    {"site_new_nothrow", site_new_nothrow, NEW, same},
    {"site_new_array_nothrow", site_new_array_nothrow, NEW_ARRAY, same},
    {"site_new_aligned", site_new_aligned, NEW_ALIGNED, same},
    {"site_new_array_aligned", site_new_array_aligned, NEW_ARRAY_ALIGNED, same},
    {"site_new_aligned_nothrow", site_new_aligned_nothrow, NEW_ALIGNED, same},
    {"site_new_array_aligned_nothrow", site_new_array_aligned_nothrow, NEW_ARRAY_ALIGNED, same},
    {"site_mallocx", site_mallocx, MALLOCX, [](size_t n) { return n + 1; }},
    {"site_mallocx_zero", site_mallocx_zero, MALLOCX, [](size_t n) { return n + 1; }},
    {"site_realloc", nullptr, MALLOC, same},
    {"site_reallocarray", nullptr, MALLOC, same},
    {"site_rallocx", nullptr, MALLOCX, same},
    {"site_xallocx", nullptr, MALLOCX, same},
};
enum { SITES = sizeof sites / sizeof sites[0], XALLOCX = SITES - 1, RALLOCX = SITES - 2, REALLOCARRAY = SITES - 3, REALLOC = SITES - 4,
       MALLOCX_ZERO = SITES - 5, THREADS = 4, SLOTS = 512 };
enum { POSIX_MEMALIGN = 4, ALIGNED_ALLOC = 5, NEW_FIRST = 9 };

struct Line { std::atomic<long> objects, bytes, live_objects, live_bytes; };
static Line ledger[SITES];

struct Block { void *p; size_t size; int site; };
static Block exchange_slots[64];
static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;

static void book(int site, size_t n, int sign) {
  if (sign > 0) { ledger[site].objects++; ledger[site].bytes += (long)n; }
  ledger[site].live_objects += sign;
  ledger[site].live_bytes += sign * (long)n;
}

// C23's, which few C libraries have yet: they are the profiler's.
static void (*sized_free)(void *, size_t);
static void (*aligned_sized_free)(void *, size_t, size_t);

static void free_malloced(const Block *b, uint64_t r) {
  bool is_aligned = b->site >= POSIX_MEMALIGN && b->site < NEW_FIRST;
  if ((r & 1) == 0) free(b->p);
  else if (b->site == ALIGNED_ALLOC) aligned_sized_free(b->p, 64, b->size);
  else if (is_aligned) free(b->p);
  else sized_free(b->p, b->size);
}

static void free_mallocxed(const Block *b, uint64_t r) {
  int flags = b->site == MALLOCX_ZERO ? ALIGN_64 : 0;
  if (r & 1) free(b->p);
  else if ((r & 2) && b->site != XALLOCX) sdallocx(b->p, b->size, flags);  // xallocx may have left a larger block as it was
  else dallocx(b->p, flags);
}

static void release(Block *b, uint64_t r) {
  if (b->p == nullptr) return;
  book(b->site, b->size, -1);
  // jemalloc 5.3.0 puts a 64-aligned block of 0 bytes, freed with its size, into the bin of 8 bytes and later hands out the same
  // address twice; there is no true ledger of that, with any profiler or none.
  if (b->size == 0) r &= ~2ull;
  switch (sites[b->site].kind) {
    case MALLOC: free_malloced(b, r); break;
    case MALLOCX: free_mallocxed(b, r); break;
    case NEW: if (r & 1) ::operator delete(b->p); else if (r & 2) ::operator delete(b->p, b->size); else ::operator delete(b->p, std::nothrow); break;
    case NEW_ARRAY: if (r & 1) ::operator delete[](b->p); else if (r & 2) ::operator delete[](b->p, b->size); else ::operator delete[](b->p, std::nothrow); break;
    case NEW_ALIGNED: if (r & 1) ::operator delete(b->p, ALIGNMENT); else if (r & 2) ::operator delete(b->p, b->size, ALIGNMENT); else ::operator delete(b->p, ALIGNMENT, std::nothrow); break;
    case NEW_ARRAY_ALIGNED: if (r & 1) ::operator delete[](b->p, ALIGNMENT); else if (r & 2) ::operator delete[](b->p, b->size, ALIGNMENT); else ::operator delete[](b->p, ALIGNMENT, std::nothrow); break;
  }
  b->p = nullptr;
}

// By rallocx, which may move it, or by xallocx, which may not; without jemalloc the latter changes nothing.
static void resize_mallocxed(Block *b, size_t size, bool may_move) {
  if (sallocx(b->p, 0) < b->size || nallocx(size, 0) < size) abort();
  if (!may_move && (site_xallocx(b->p, size) < size || mallctl == nullptr)) return;
  int site = may_move ? RALLOCX : XALLOCX;
  void *p = may_move ? site_rallocx(b->p, size) : b->p;
  if (p == nullptr || *(char *)p != 1) abort();
  book(b->site, b->size, -1);
  book(site, size, 1);
  memset(p, 1, size);
  *b = Block{p, size, site};
}

static long calls_each;
static uint64_t seed;
static bool with_pvalloc;  // jemalloc has none: libc's answers, with a block that jemalloc's free does not know

static void *work(void *argument) {
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + (uint64_t)(uintptr_t)argument * 0xD1B54A32D192ED03ull + 1;
  auto random = [&state] {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state * 0x2545F4914F6CDD1Dull >> 11;
  };
  static thread_local Block blocks[SLOTS];
  for (long i = 0; i < calls_each; i++) {
    Block *b = &blocks[random() % SLOTS];
    size_t n = random() % 64 == 0 ? random() % 200000 : random() % 700;
    if (b->p != nullptr && sites[b->site].kind == MALLOC && b->site != 6 && random() % 3 == 0) {
      int site = random() % 2 ? REALLOC : REALLOCARRAY;
      size_t size = site == REALLOC ? n + 1 : (n + 1) * 2;
      void *p = site == REALLOC ? site_realloc(b->p, n + 1) : site_reallocarray(b->p, n + 1);
      if (p == nullptr) abort();
      book(b->site, b->size, -1);
      book(site, size, 1);
      *b = Block{p, size, site};
      continue;
    }
    if (b->p != nullptr && sites[b->site].kind == MALLOCX && b->site != MALLOCX_ZERO && random() % 2 == 0) {
      resize_mallocxed(b, n + 1, random() % 2);
      continue;
    }
    release(b, random());
    int site = (int)(random() % REALLOC);
    if ((site == 7 || site == 8) && random() % 8) site = 0;  // whole pages: seldom
    if (site == 8 && !with_pvalloc) site = 7;
    void *p = sites[site].alloc(n);
    if (p == nullptr || (site == MALLOCX_ZERO && (*(char *)p != 0 || ((char *)p)[n] != 0 || (uintptr_t)p % 64 != 0))) abort();
    memset(p, 1, sites[site].requested(n));
    *b = Block{p, sites[site].requested(n), site};
    book(site, b->size, 1);
    if (random() % 4 == 0) {  // to be freed by whoever draws it next
      pthread_mutex_lock(&exchange_lock);
      Block *other = &exchange_slots[random() % 64];
      Block kept = *other;
      *other = *b;
      *b = kept;
      pthread_mutex_unlock(&exchange_lock);
    }
  }
  for (int i = 0; i < SLOTS; i += 2) release(&blocks[i], random());
  return nullptr;
}

int main(int argc, char **argv) {
  calls_each = (argc > 1 ? atol(argv[1]) : 1000000) / THREADS;
  seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : 1;
  with_pvalloc = argc <= 3 || strcmp(argv[3], "no-pvalloc") != 0;
  sized_free = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
  aligned_sized_free = (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
  if (sized_free == nullptr || aligned_sized_free == nullptr) {
    fputs("nobody has free_sized and free_aligned_sized\n", stderr);
    return 1;
  }
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], nullptr, work, (void *)(i + 1));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], nullptr);
  for (int i = 0; i < SITES; i++) {
    printf("%s %ld %ld %ld %ld\n", sites[i].name, ledger[i].objects.load(), ledger[i].bytes.load(),
           ledger[i].live_objects.load(), ledger[i].live_bytes.load());
  }
  return 0;
}
