/* SPDX-License-Identifier: MIT
 * containers.cc - operator new in one thread and in many. */
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

static void containers_thread(size_t *out) {
  std::vector<std::string> strings;
  for (int i = 0; i < 2000; i++) strings.push_back(std::string(i % 300, 'x'));
  for (const std::string &s : strings) *out += s.size();
  new std::vector<std::string>(strings); /* what the profile shows */
}

int main() {
  auto *map = new std::map<int, std::string>;
  for (int i = 0; i < 5000; i++) (*map)[i] = std::string(i % 200, 'y');
  std::vector<std::thread> threads;
  std::vector<size_t> sums(8);
  for (size_t &sum : sums) threads.emplace_back(containers_thread, &sum);
  for (std::thread &thread : threads) thread.join();
  std::printf("map %zu\n", map->size());
  for (size_t sum : sums) std::printf("%zu\n", sum);
}
