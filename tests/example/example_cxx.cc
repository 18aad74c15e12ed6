/* SPDX-License-Identifier: MIT
 * example_cxx.cc - heapprof.h from C++98 on: a profile of what operator new gave. Runs with the library and without; see
 * example.c.
 *
 *   example_cxx PROFILE     write the profile to this path */
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "heapprof.h"

static const size_t kBytes = 4096;

static __attribute__((noinline)) void collect(std::vector<std::string> *lines) {
  for (int i = 0; i < 200; i++) lines->push_back(std::string(kBytes, 'x'));
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  std::printf("active %d\n", heapprof_active());
  std::printf("rate %d\n", heapprof_set_sample_rate(1));
  std::vector<std::string> lines;
  collect(&lines);
  struct heapprof_stats counters;
  std::memset(&counters, 0xa5, sizeof counters);
  int result = heapprof_stats(&counters);
  if (result == -ENOSYS) {
    std::printf("filled: not profiled\n");
  } else {
    std::printf("filled: result %d, in use at least 200 strings: %s\n", result,
                counters.inuse_bytes_estimate >= 200 * kBytes ? "yes" : "no");
  }
  std::printf("dump %d\n", heapprof_dump(argv[1]));
  std::printf("stop %d\n", heapprof_stop());
  return 0;
}
