// SPDX-License-Identifier: MIT
// own_operators.cc - linked to every_form.cc: a program that replaces operator new and delete by a pool of its own, and no other form.
// The runtime's forms end in these, so what they made comes back here.
#include <cstddef>
#include <cstdlib>
#include <new>

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
