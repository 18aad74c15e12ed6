// SPDX-License-Identifier: MIT
// cxx_plugin.cc - a plugin whose C++ runtime only it sees: its new throws, which malloc's answer alone would not.
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

extern "C" int cxx_plugin_use(void);
extern "C" int cxx_plugin_use(void) {
  static const std::align_val_t alignment{128};
  volatile std::size_t too_much = SIZE_MAX / 4;
  std::string *text = new std::string(1000, 'x');
  bool is_right = text->size() == 1000;
  delete text;
  void *aligned = ::operator new(100, alignment);
  is_right = is_right && reinterpret_cast<std::uintptr_t>(aligned) % 128 == 0;
  ::operator delete(aligned, alignment);
  delete[] new char[100];
  if (!is_right || ::operator new(too_much, std::nothrow) != nullptr) return 1;
  try {
    ::operator delete(::operator new(too_much));
  } catch (const std::bad_alloc &) {
    return 0;
  }
  return 2;
}
