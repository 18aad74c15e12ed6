/* SPDX-License-Identifier: MIT
 * fuzz_symbolize.c - libFuzzer: any bytes as the binary a profile points at, ELF and DWARF, through the command's symbolizer.
 *   byte 0      bit 0: the mapping's offset in the file is a page, not 0; bit 1: every place is asked for twice
 *   bytes 1..16 eight addresses, relative to the mapping's start, two bytes each
 *   rest        the file
 * What must hold: every location has at least one line or none at all, names are there, the profile can be written. ASan and
 * UBSan watch; libdw is the system's, not instrumented, but its calls of memory and string functions are watched too.
 * Seeds: fuzz_symbolize_seed.sh makes them of small objects.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile_model.h"
#include "profile_writer.h"
#include "symbolize.h"

enum { GIVEN = 8, SPREAD = 24, PREFIX = 1 + 2 * GIVEN, PAGE = 4096, START = 0x7f0000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
  if (!condition) abort();
}

static void add_place(struct hp_profile *profile, uint32_t mapping, uint64_t distance) {
  struct hp_location location = {.address = START + distance, .mapping = mapping};
  uint32_t at = hp_profile_append_location(profile, &location);
  hp_profile_append_sample(profile, &at, 1, (int64_t[]){1});
}

static struct hp_profile *make_profile(const uint8_t *data, size_t file_bytes, const char *path) {
  struct hp_profile *profile = hp_profile_new();
  hp_profile_append_type(profile, "inuse_space", "bytes");
  struct hp_mapping mapping = {.start = START,
                               .limit = START + file_bytes + 16 * PAGE,
                               .offset = (data[0] & 1) != 0 ? PAGE : 0,
                               .file = hp_profile_intern(profile, path)};
  uint32_t index = hp_profile_append_mapping(profile, &mapping);
  for (int round = 0; round <= (data[0] >> 1 & 1); round++) {
    for (int i = 0; i < GIVEN; i++) add_place(profile, index, data[1 + 2 * i] | (uint64_t)data[2 + 2 * i] << 8);
    for (uint64_t i = 0; i < SPREAD; i++) add_place(profile, index, i * (file_bytes + PAGE) / SPREAD);
  }
  return profile;
}

static void check(const struct hp_profile *profile) {
  struct hp_error error;
  void *bytes;
  size_t length;
  for (size_t i = 0; i < profile->location_count; i++) {
    const struct hp_location *location = &profile->locations[i];
    require(location->first_line + (size_t)location->line_count <= profile->line_count);
    for (uint32_t k = 0; k < location->line_count; k++) {
      const struct hp_line *line = &profile->lines[location->first_line + k];
      require(line->function < profile->function_count && line->line >= 0);
      require(k != location->line_count - 1U || profile->functions[line->function].name != 0);
    }
  }
  require(hp_profile_write_memory(profile, &bytes, &length, &error) == 0);
  free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < PREFIX + 16) return 0;
  char path[64];
  unsetenv("DEBUGINFOD_URLS");
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data + PREFIX, size - PREFIX) != (ssize_t)(size - PREFIX)) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  struct hp_profile *profile = make_profile(data, size - PREFIX, path);
  hp_symbolize(profile, &(struct hp_symbolize_options){0});
  check(profile);
  hp_profile_free(profile);
  close(fd);
  return 0;
}
