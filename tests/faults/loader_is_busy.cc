// SPDX-License-Identifier: MIT
// loader_is_busy.cc - claim: the first call of an operator new or delete needs nothing of the loader.
//   loader_is_busy PLUGIN  another thread holds the loader's lock, and waits for this one (waiting_plugin.cc)
//   loader_is_busy         an error message waits for dlerror()
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <stdexcept>

static constexpr std::align_val_t ALIGNMENT{128};

extern "C" __attribute__((visibility("default"))) void use_operators() {
  constexpr std::size_t size = 100;
  ::operator delete(::operator new(size));
  ::operator delete(::operator new(size, std::nothrow), size);
  ::operator delete(::operator new(size), std::nothrow);
  ::operator delete[](::operator new[](size));
  ::operator delete[](::operator new[](size, std::nothrow), size);
  ::operator delete[](::operator new[](size), std::nothrow);
  ::operator delete(::operator new(size, ALIGNMENT), ALIGNMENT);
  ::operator delete(::operator new(size, ALIGNMENT, std::nothrow), size, ALIGNMENT);
  ::operator delete(::operator new(size, ALIGNMENT), ALIGNMENT, std::nothrow);
  ::operator delete[](::operator new[](size, ALIGNMENT), ALIGNMENT);
  ::operator delete[](::operator new[](size, ALIGNMENT, std::nothrow), size, ALIGNMENT);
  ::operator delete[](::operator new[](size, ALIGNMENT), ALIGNMENT, std::nothrow);
}

static int say_what_failed() {
  if (dlopen("./there-is-no-such-library.so", RTLD_NOW) != nullptr) return 1;
  use_operators();
  return dlerror() != nullptr ? 0 : 2;
}

int main(int count, char **arguments) {
  if (count < 2) return say_what_failed();
  if (dlopen(arguments[1], RTLD_NOW) == nullptr) throw std::runtime_error(dlerror());
  return 0;
}
