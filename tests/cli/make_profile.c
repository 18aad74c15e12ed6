/* SPDX-License-Identifier: MIT
 * make_profile.c - profiles of any size for tests and benchmarks, always the same for the same arguments.
 *
 *   make_profile rows ROWS DEPTH FUNCTIONS OUT          stacks of named functions
 *   make_profile addresses ROWS DEPTH OUT BINARY...     stacks of addresses in the functions of the binaries, no names
 *   make_profile read FILE                              reads a profile and nothing else: what top is compared with
 *   make_profile unpack FILE                            zlib and protobuf-c alone, in one thread: what reading cannot be less than there
 */
#include <gelf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "cli_memory.h"
#include "profile.pb-c.h"
#include "profile_model.h"
#include "profile_reader.h"
#include "profile_writer.h"

static uint64_t state = 88172645463325252u;

static uint64_t random_below(uint64_t bound) { /* xorshift */
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % bound;
}

static struct hp_profile *new_profile(void) {
  static const char *const types[][2] = {
      {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
  struct hp_profile *profile = hp_profile_new();
  for (int i = 0; i < 4; i++) hp_profile_append_type(profile, types[i][0], types[i][1]);
  profile->period_type = (struct hp_value_type){hp_profile_intern(profile, "space"), hp_profile_intern(profile, "bytes")};
  profile->period = 524288;
  profile->default_type = hp_profile_intern(profile, "inuse_space");
  profile->time_nanos = 1700000000000000000;
  return profile;
}

/* Frames near the root are few, those near the leaf many, as in real profiles. */
static void add_stacks(struct hp_profile *profile, unsigned long rows, unsigned long depth) {
  uint32_t *stack = hp_alloc(depth * sizeof *stack);
  for (unsigned long r = 0; r < rows; r++) {
    for (unsigned long d = 0; d < depth; d++) {
      uint64_t spread = profile->location_count >> (d * 10 / depth);
      stack[d] = (uint32_t)random_below(spread > 4 ? spread : 4);
    }
    int64_t objects = 1 + (int64_t)random_below(100), size = 16 << random_below(12);
    int64_t values[4] = {objects * 3, objects * 3 * size, objects, objects * size};
    hp_profile_append_sample(profile, stack, depth, values);
  }
  free(stack);
}

static void add_functions(struct hp_profile *profile, unsigned long count) {
  struct hp_mapping mapping = {.start = 0x400000, .limit = 0x40000000, .has_functions = true};
  mapping.file = hp_profile_intern(profile, "/usr/bin/generated");
  hp_profile_append_mapping(profile, &mapping);
  for (unsigned long i = 0; i < count; i++) {
    char *name = hp_format("module_%lu::function_number_%lu(int, std::string const&)", i / 50, i);
    char *file = hp_format("/src/module_%lu.cc", i / 50);
    struct hp_function function = {.name = hp_profile_intern(profile, name), .file = hp_profile_intern(profile, file)};
    uint32_t index = hp_profile_append_function(profile, &function);
    for (int l = 0; l < 3; l++) {
      struct hp_location location = {
          .address = 0x400000 + i * 64 + (unsigned)l * 16, .first_line = (uint32_t)profile->line_count, .line_count = 1};
      hp_profile_append_line(profile, &(struct hp_line){index, 10 + l, 0});
      hp_profile_append_location(profile, &location);
    }
    free(name);
    free(file);
  }
}

static void add_function_addresses(struct hp_profile *profile, Elf *elf, Elf_Scn *section, uint32_t mapping,
                                   GElf_Phdr *code) {
  GElf_Shdr header;
  gelf_getshdr(section, &header);
  Elf_Data *data = elf_getdata(section, NULL);
  (void)elf;
  for (size_t i = 0; data != NULL && i < header.sh_size / header.sh_entsize; i++) {
    GElf_Sym symbol;
    if (gelf_getsym(data, (int)i, &symbol) == NULL || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size < 8)
      continue;
    if (symbol.st_value < code->p_vaddr || symbol.st_value >= code->p_vaddr + code->p_memsz) continue;
    for (int k = 0; k < 3; k++) {
      uint64_t at = symbol.st_value + random_below(symbol.st_size);
      struct hp_location location = {.mapping = mapping,
                                     .address = profile->mappings[mapping].start + at - (code->p_vaddr & ~(uint64_t)4095)};
      hp_profile_append_location(profile, &location);
    }
  }
}

static void add_binary(struct hp_profile *profile, const char *path) {
  int fd = open(path, O_RDONLY);
  Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
  size_t count = 0;
  GElf_Phdr code = {0};
  if (elf == NULL || elf_getphdrnum(elf, &count) != 0) exit(1);
  for (size_t i = 0; i < count; i++) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, (int)i, &segment) != NULL && segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      code = segment;
  }
  uint64_t start = 0x7f0000000000u + profile->mapping_count * 0x10000000u;
  struct hp_mapping mapping = {.start = start,
                               .limit = start + ((code.p_memsz + 8191) & ~(uint64_t)4095),
                               .offset = code.p_offset & ~(uint64_t)4095,
                               .file = hp_profile_intern(profile, path)};
  const void *id;
  ssize_t length = dwelf_elf_gnu_build_id(elf, &id);
  char hex[129] = "";
  for (ssize_t i = 0; i < length && i < 64; i++) sprintf(hex + 2 * i, "%02x", ((const unsigned char *)id)[i]);
  mapping.build_id = hp_profile_intern(profile, hex);
  uint32_t index = hp_profile_append_mapping(profile, &mapping);
  for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_SYMTAB)
      add_function_addresses(profile, elf, section, index, &code);
  }
  elf_end(elf);
  close(fd);
}

static int read_only(const char *path) {
  struct hp_profile *profile;
  struct hp_error error;
  if (hp_profile_read(path, &profile, &error) != 0) return hp_fail(&error);
  hp_profile_free(profile);
  return 0;
}

static int unpack_only(const char *path) {
  gzFile file = gzopen(path, "rb");
  if (file == NULL) return 1;
  uint8_t *bytes = NULL;
  size_t room = 0, length = 0;
  int count;
  do {
    hp_array_reserve(&bytes, &room, length + (1 << 20), 1);
    count = gzread(file, bytes + length, 1 << 20);
    length += count > 0 ? (size_t)count : 0;
  } while (count > 0);
  gzclose(file);
  Perftools__Profiles__Profile *profile = count == 0 ? perftools__profiles__profile__unpack(NULL, length, bytes) : NULL;
  free(bytes);
  if (profile == NULL) return 1;
  perftools__profiles__profile__free_unpacked(profile, NULL);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "read") == 0) return read_only(argv[2]);
  if (argc == 3 && strcmp(argv[1], "unpack") == 0) return unpack_only(argv[2]);
  struct hp_profile *profile = new_profile();
  const char *out;
  if (argc == 6 && strcmp(argv[1], "rows") == 0) {
    add_functions(profile, strtoul(argv[4], NULL, 10));
    out = argv[5];
  } else if (argc >= 6 && strcmp(argv[1], "addresses") == 0) {
    elf_version(EV_CURRENT);
    for (int i = 5; i < argc; i++) add_binary(profile, argv[i]);
    out = argv[4];
  } else {
    fputs(
        "usage: make_profile rows ROWS DEPTH FUNCTIONS OUT | addresses ROWS DEPTH OUT BINARY... | read FILE | unpack FILE\n",
        stderr);
    return 2;
  }
  if (profile->location_count == 0) return 1;
  add_stacks(profile, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
  struct hp_error error;
  if (hp_profile_write(out, profile, &error) != 0) return hp_fail(&error);
  hp_profile_free(profile);
  return 0;
}
