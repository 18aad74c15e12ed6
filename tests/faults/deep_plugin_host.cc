// SPDX-License-Identifier: MIT
// deep_plugin_host.cc - claim: a block that a plugin opened with RTLD_DEEPBIND makes by new, which reaches the library by malloc alone, is
// counted with its own size, not with that of the program's last new. So are those that the program's own new makes.
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "heapprof.h"

static unsigned long inuse_bytes() {
  struct heapprof_stats now = {};
  if (heapprof_stats(&now) != 0) std::abort();
  return now.inuse_bytes_estimate;
}

int main(int, char **arguments) {
  void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
  if (plugin == nullptr) return 1;
  auto *deep_new = reinterpret_cast<void *(*)(std::size_t)>(dlsym(plugin, "deep_new"));
  auto *deep_delete = reinterpret_cast<void (*)(void *)>(dlsym(plugin, "deep_delete"));
  if (deep_new == nullptr || deep_delete == nullptr) return 2;
  ::operator delete(::operator new(1)); /* what is made at the first call is there */
  unsigned long before = inuse_bytes();
  void *own = ::operator new(100000);
  if (inuse_bytes() - before != 100000) return 3;
  void *deep = deep_new(10);
  if (inuse_bytes() - before != 100010) return 4;
  void *small = ::operator new(0);
  void *large = deep_new(5000);
  if (inuse_bytes() - before != 105010) return 5;
  deep_delete(large);
  deep_delete(deep);
  ::operator delete(small);
  ::operator delete(own);
  return inuse_bytes() == before ? 0 : 6;
}
