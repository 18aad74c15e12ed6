// SPDX-License-Identifier: MIT
// own_operators.cc - linked to every_form.cc: a program that replaces operator new and delete by a pool of its own, and no other form.
// The runtime's forms end in these, so what they made comes back here. It is not malloc's, and not counted.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "heapprof.h"

static constexpr std::size_t POOL_BYTES = 1 << 22;
alignas(16) static char pool[POOL_BYTES];
static std::size_t used;

void *operator new(std::size_t size) {
  std::size_t at = __atomic_fetch_add(&used, (size + 15) / 16 * 16 + 16, __ATOMIC_RELAXED);
  if (at + size > POOL_BYTES) std::abort();
  return pool + at;
}
void operator delete(void *ptr) noexcept {
  if (ptr != nullptr && (ptr < pool || ptr >= pool + POOL_BYTES)) std::abort();
}
void operator delete(void *ptr, std::size_t) noexcept { operator delete(ptr); }

extern "C" int pool_is_counted();
extern "C" int pool_is_counted() {
  struct heapprof_stats before = {}, after = {};
  if (heapprof_stats(&before) != 0) return 1;
  for (int i = 0; i < 100; i++) {
    char *volatile block = new (std::nothrow) char[1000];
    delete[] block;
    int *volatile number = new (std::nothrow) int;
    delete number;
  }
  return heapprof_stats(&after) == 0 && after.samples == before.samples ? 0 : 2;
}
