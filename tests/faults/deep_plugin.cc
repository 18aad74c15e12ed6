// SPDX-License-Identifier: MIT
// deep_plugin.cc - opened with RTLD_DEEPBIND: its operators new and delete are its runtime's, and pass by ours.
#include <cstddef>
#include <new>

extern "C" void *deep_new(std::size_t);
extern "C" void *deep_new(std::size_t size) { return ::operator new(size); }
extern "C" void deep_delete(void *);
extern "C" void deep_delete(void *block) { ::operator delete(block); }
