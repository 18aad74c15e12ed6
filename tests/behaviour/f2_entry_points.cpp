// SPDX-License-Identifier: MIT
// F2: the leaf is the caller of the allocator, by name, for every entry point; no frame of the profiler, none of operator new;
// strdup stays. Each call_X allocates one block of its own size.
#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "heapprof.h"

#define CALL(name, expression)                           \
  extern "C" __attribute__((noinline)) void *name(void); \
  extern "C" void *name(void) {                          \
    void *volatile p = (expression);                     \
    return p;                                            \
  }

static void *posix_aligned(size_t alignment, size_t size) __attribute__((always_inline));
static inline void *posix_aligned(size_t alignment, size_t size) {
  void *p = nullptr;
  return posix_memalign(&p, alignment, size) == 0 ? p : nullptr;
}

static char text[] = "a string of thirty-one letters.";
using align = std::align_val_t;

CALL(call_malloc, malloc(101))
CALL(call_calloc, calloc(2, 51))
CALL(call_realloc, realloc(nullptr, 103))
CALL(call_reallocarray, reallocarray(nullptr, 4, 26))
CALL(call_posix_memalign, posix_aligned(64, 105))
CALL(call_aligned_alloc, aligned_alloc(64, 128))
CALL(call_memalign, memalign(64, 107))
CALL(call_valloc, valloc(108))
CALL(call_pvalloc, pvalloc(109))
CALL(call_strdup, strdup(text))
CALL(call_new, ::operator new(111))
CALL(call_new_array, ::operator new[](112))
CALL(call_new_nothrow, ::operator new(113, std::nothrow))
CALL(call_new_array_nothrow, ::operator new[](114, std::nothrow))
CALL(call_new_aligned, ::operator new(115, align(64)))
CALL(call_new_array_aligned, ::operator new[](116, align(64)))
CALL(call_new_aligned_nothrow, ::operator new(117, align(64), std::nothrow))
CALL(call_new_array_aligned_nothrow, ::operator new[](118, align(64), std::nothrow))
CALL(call_new_expression, new uint64_t[15])

extern "C" __attribute__((noinline)) void call_report(void);
extern "C" void call_report(void) {
  static char place[8];
  heapprof_report_alloc(place, 120);
  asm volatile("");
}

static void *(*const calls[])(void) = {call_malloc,
                                       call_calloc,
                                       call_realloc,
                                       call_reallocarray,
                                       call_posix_memalign,
                                       call_aligned_alloc,
                                       call_memalign,
                                       call_valloc,
                                       call_pvalloc,
                                       call_strdup,
                                       call_new,
                                       call_new_array,
                                       call_new_nothrow,
                                       call_new_array_nothrow,
                                       call_new_aligned,
                                       call_new_array_aligned,
                                       call_new_aligned_nothrow,
                                       call_new_array_aligned_nothrow,
                                       call_new_expression};

int main(int, char **argv) {
  char path[4096];
  for (auto call : calls) {
    if (call() == nullptr) return 1;
  }
  call_report();
  strcat(strcpy(path, argv[1]), "/entries.pb.gz");
  return heapprof_dump(path) == 0 ? 0 : 1;
}
