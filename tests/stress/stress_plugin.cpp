/* SPDX-License-Identifier: MIT
 * stress_plugin.cpp - a library that comes and goes while its allocations are sampled; and frames to throw through. */
#include <cstdlib>
#include <new>
#include <string>

extern "C" void *plugin_allocate(size_t bytes) { return std::malloc(bytes); }

namespace {
struct Holder {
  explicit Holder(int depth) : text(static_cast<size_t>(16 + depth), 'x') {}
  std::string text;
};

/* Each level owns a block that unwinding must free. */
__attribute__((noinline)) int descend(int depth) {
  Holder holder(depth);
  if (depth == 0) throw std::string(100, 'e');
  return descend(depth - 1) + static_cast<int>(holder.text.size());
}
}  // namespace

extern "C" int plugin_throw(int depth) {
  try {
    return descend(depth);
  } catch (const std::string &text) {
    return static_cast<int>(text.size());
  }
}

/* A new that must fail, for the way through new_handler and bad_alloc. */
extern "C" int plugin_bad_alloc() {
  try {
    volatile size_t much = static_cast<size_t>(1) << 60;
    char *volatile p = new char[much];  // volatile: a compiler may leave out a new that nobody looks at
    delete[] p;
    return 1;
  } catch (const std::bad_alloc &) {
    return 0;
  }
}
