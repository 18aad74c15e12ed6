// SPDX-License-Identifier: MIT
// every_form.cc - claim: a block goes back to whoever made it, whichever form of allocation it came from, with an allocator in front
// of the library (preloaded before it, or linked into the program), a wrapper there, or one behind it that tells the forms apart.
// The allocator (marking_allocator.c) ends the program when it is given what is not its own.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

extern "C" void free_sized(void *, std::size_t) __attribute__((weak));
extern "C" void free_aligned_sized(void *, std::size_t, std::size_t) __attribute__((weak));

struct alignas(128) Wide {
  char bytes[128];
};

static void grow_by_array() {
  char *block = nullptr;
  for (std::size_t n = 1; n < 100; n++) {
    block = static_cast<char *>(reallocarray(block, n, 100));
    if (block == nullptr) std::abort();
    std::memset(block, 1, n * 100);
  }
  volatile std::size_t half = SIZE_MAX / 2;
  if (reallocarray(block, half, 3) != nullptr || block[0] != 1) std::abort();
  std::free(block);
}

static void use_every_form() {
  std::free(std::realloc(std::malloc(100), 1000));
  std::free(std::calloc(10, 10));
  std::free(strdup("text"));
  grow_by_array();
  if (free_sized != nullptr) free_sized(std::malloc(100), 100);
  if (free_aligned_sized != nullptr) free_aligned_sized(aligned_alloc(64, 128), 64, 128);
  delete new std::string(1000, 'x');
  delete[] new std::string[10];
  delete new (std::nothrow) int(1);
  delete[] new (std::nothrow) int[100];
  delete new Wide;
  ::operator delete(::operator new(0));
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < 100; i++) strings.emplace_back(i, 'y');
}

// own_operators.cc has it.
extern "C" int pool_is_counted() __attribute__((weak));

int main() {
  use_every_form();
  std::thread(use_every_form).join();
  return pool_is_counted != nullptr ? pool_is_counted() : 0;
}
