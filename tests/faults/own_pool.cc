// SPDX-License-Identifier: MIT
// own_pool.cc - claim: a program's own operators new and delete may cut their blocks out of one of malloc's. The first has that one's address;
// when it is deleted, by whatever form of the runtime's that ends in the program's, malloc's block is still there, and is still counted.
#include <cstdlib>
#include <new>

#include "heapprof.h"

static constexpr std::size_t CHUNK_BYTES = 1 << 16;
static void *chunk;

void *operator new(std::size_t) { return chunk; }
void operator delete(void *) noexcept {}

// The sized forms, as the runtime has them: this program is of before C++14 and defines none.
extern "C" void _ZdlPvm(void *, std::size_t);
extern "C" void _ZdaPvm(void *, std::size_t);

using deleter = void(void *);
static deleter *const forms[] = {
    [](void *block) { ::operator delete(block); },
    [](void *block) { _ZdlPvm(block, 100); },
    [](void *block) { ::operator delete(block, std::nothrow); },
    [](void *block) { ::operator delete[](block); },
    [](void *block) { _ZdaPvm(block, 100); },
    [](void *block) { ::operator delete[](block, std::nothrow); },
};

static unsigned long live_samples() {
  struct heapprof_stats now = {};
  if (heapprof_stats(&now) != 0) std::abort();
  return now.live_samples;
}

int main() {
  int form = 0;
  for (deleter *give_back : forms) {
    form++;
    chunk = std::malloc(CHUNK_BYTES);
    unsigned long before = live_samples();
    give_back(::operator new(100));
    if (live_samples() != before) return form;
    std::free(chunk);
    if (live_samples() != before - 1) return 100 + form;
  }
  return 0;
}
