// SPDX-License-Identifier: MIT
// waiting_plugin.cc - its constructor, which dlopen runs with the loader's lock held, waits for a thread that uses operators new and delete.
#include <thread>

extern "C" void use_operators();  // loader_is_busy.cc

__attribute__((constructor)) static void start() { std::thread(use_operators).join(); }
