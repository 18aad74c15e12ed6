/* SPDX-License-Identifier: MIT
 * symbols.c - see symbols.h: what is remembered, and which file speaks for a module. */
#include "symbols.h"

#include <errno.h>
#include <string.h>

#include "budget.h"
#include "elf_reader.h"
#include "elf_symbols.h"
#include "module_file.h"
#include "pair_map.h"
#include "string_interner.h"
#include "sys.h"

enum { COMPARE_BYTES = 256, NAMES_CHUNK_BYTES = 64 * 1024 };

/* Owned by the one dump that runs. */
static struct hp_arena remembered_arena = {.chunk_bytes = NAMES_CHUNK_BYTES};
static struct hp_string_interner remembered_names = {.arena = &remembered_arena};
/* (address, module index) -> 1 + number of the name; number 0, "": known to be unknown. */
static struct hp_pair_map remembered_answers = {.arena = &remembered_arena};

struct pending {
  uint64_t address; /* in memory */
  uint32_t module_index;
  uint32_t query;
};

static bool is_before(const struct pending *a, const struct pending *b) {
  return a->module_index != b->module_index ? a->module_index < b->module_index : a->address < b->address;
}

/* Let list[at] sink to its place in the heap list[0..n). */
static void sift_down(struct pending *list, size_t at, size_t n) {
  struct pending item = list[at];
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && is_before(&list[child], &list[child + 1])) child++;
    if (!is_before(&item, &list[child])) break;
    list[at] = list[child];
  }
  list[at] = item;
}

/* Heap sort: in place, no recursion, n log n whatever the order. */
static void sort_pending(struct pending *list, size_t n) {
  for (size_t i = n / 2; i-- > 0;) sift_down(list, i, n);
  for (size_t end = n; end-- > 1;) {
    struct pending greatest = list[0];
    list[0] = list[end];
    list[end] = greatest;
    sift_down(list, 0, end);
  }
}

/* Are n bytes of the file at `offset` the ones in memory at `address`? The memory may be gone: it is read through a file. */
static bool is_same_in_memory(const struct hp_elf *elf, int memory_fd, uint64_t offset, uint64_t n, uintptr_t address) {
  char from_file[COMPARE_BYTES];
  char from_memory[COMPARE_BYTES];
  for (uint64_t done = 0; done < n; done += COMPARE_BYTES) {
    size_t part = n - done < COMPARE_BYTES ? (size_t)(n - done) : COMPARE_BYTES;
    if (!hp_elf_read(elf, offset + done, from_file, part)) return false;
    if (hp_sys_pread(memory_fd, from_memory, part, (int64_t)(address + offset + done)) != (long)part) return false;
    if (memcmp(from_file, from_memory, part) != 0) return false;
  }
  return true;
}

/* Without a build id: the ELF header and the program headers are the ones that were loaded. */
static bool has_loaded_headers(const struct hp_elf *elf, const struct hp_module *module) {
  int memory_fd = hp_sys_open("/proc/self/mem", O_RDONLY | O_CLOEXEC, 0);
  if (memory_fd < 0) return false;
  uint64_t bytes = (uint64_t)elf->header.e_phnum * sizeof(Elf64_Phdr);
  bool is_same = is_same_in_memory(elf, memory_fd, 0, sizeof elf->header, module->map_start) &&
                 is_same_in_memory(elf, memory_fd, elf->header.e_phoff, bytes, module->map_start);
  hp_sys_close(memory_fd);
  return is_same;
}

static bool speaks_for(const struct hp_elf *elf, const struct hp_module *module) {
  if (module->build_id_size == 0) return has_loaded_headers(elf, module);
  uint8_t id[HP_BUILD_ID_MAX];
  size_t n = hp_elf_build_id(elf, id, sizeof id);
  return n == module->build_id_size && memcmp(id, module->build_id, n) == 0;
}

/* 0, or why there is no file that speaks for the module. */
static int open_module(struct hp_elf *elf, const struct hp_module *module, const char *executable,
                       struct hp_arena *scratch) {
  if (module->is_vdso) {
    return hp_elf_open_memory(elf, (const void *)module->map_start, module->map_end - module->map_start);
  }
  /* /proc/self/exe is the program even when its file is gone, but not when the loader was called by hand. */
  const char *const paths[] = {module->is_executable ? "/proc/self/exe" : hp_module_file(module, scratch),
                               module->is_executable ? executable : module->path};
  int status = -ENOENT;
  for (size_t i = 0; i < HP_ARRAY_LENGTH(paths); i++) {
    if (paths[i] == NULL || paths[i][0] == 0) continue;
    status = hp_elf_open(elf, paths[i]);
    if (status != 0) continue;
    if (speaks_for(elf, module)) return 0;
    hp_elf_close(elf);
    status = -ENOENT;
  }
  return status;
}

/* Would the next dump fare better? */
static bool is_passing(int status) {
  return status == -EMFILE || status == -ENFILE || status == -ENOMEM || status == -EINTR || status == -EAGAIN;
}

/* Keep the answer to a query (n == 0: unknown). */
static void remember(struct hp_symbol_query *query, const char *name, size_t n, struct hp_arena *scratch) {
  uint32_t id = hp_string_interner_add(&remembered_names, name, n, false);
  if (id == HP_STRING_NONE) {
    query->name = hp_arena_copy(scratch, name, n); /* at the ceiling: for this dump */
    return;
  }
  if (hp_pair_map_get(&remembered_answers, query->address, query->module->index) == 0) {
    hp_pair_map_put(&remembered_answers, query->address, query->module->index, id + 1);
  }
  size_t length;
  query->name = id == 0 ? NULL : hp_string_interner_get(&remembered_names, id, &length);
}

static void remember_unknown(struct hp_symbol_query *queries, const struct pending *list, size_t n,
                             struct hp_arena *scratch) {
  for (size_t i = 0; i < n; i++) remember(&queries[list[i].query], "", 0, scratch);
}

/* One pass over the files: what all of them need in turn. */
struct pass {
  struct hp_symbol_query *queries;
  const char *executable;
  struct hp_arena *scratch;
  struct hp_elf_names names;
  struct hp_elf_target *targets; /* as many as any one file has addresses */
};

/* The symbols of one open file for its n addresses, sorted. */
static void match_names(struct pass *pass, const struct hp_elf *elf, const struct pending *list, size_t n) {
  struct hp_symbol_query *queries = pass->queries;
  struct hp_elf_names *names = &pass->names;
  struct hp_elf_target *targets = pass->targets;
  int status = hp_elf_names_open(names, elf, pass->scratch);
  if (status == -ENOENT) remember_unknown(queries, list, n, pass->scratch);
  if (status != 0) return;
  const struct hp_module *module = queries[list[0].query].module;
  for (size_t i = 0; i < n; i++) targets[i] = (struct hp_elf_target){.address = list[i].address - module->load_bias};
  hp_elf_names_match(names, targets, n);
  uint64_t last_key = UINT64_MAX;
  size_t length = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t key = UINT64_MAX;
    size_t found = hp_elf_names_read(names, &targets[i], last_key, length, &key);
    last_key = key;
    length = found;
    remember(&queries[list[i].query], names->name, found, pass->scratch);
  }
}

static void resolve_module(struct pass *pass, const struct pending *list, size_t n) {
  struct hp_elf elf;
  int status = open_module(&elf, pass->queries[list[0].query].module, pass->executable, pass->scratch);
  if (status == 0) {
    match_names(pass, &elf, list, n);
    hp_elf_close(&elf);
  } else if (!is_passing(status)) {
    remember_unknown(pass->queries, list, n, pass->scratch);
  }
}

/* The end of the module's part of the list that begins at `first`. */
static size_t end_of_module(const struct pending *list, size_t first, size_t n) {
  size_t end = first + 1;
  while (end < n && list[end].module_index == list[first].module_index) end++;
  return end;
}

static size_t largest_module(const struct pending *list, size_t n) {
  size_t largest = 0;
  for (size_t first = 0, end; first < n; first = end) {
    end = end_of_module(list, first, n);
    if (end - first > largest) largest = end - first;
  }
  return largest;
}

/* Answer from memory what is known; the others go to `list`. Returns their number. */
static size_t answer_known(struct hp_symbol_query *queries, size_t n, struct pending *list) {
  size_t pending = 0;
  for (size_t i = 0; i < n; i++) {
    struct hp_symbol_query *query = &queries[i];
    query->name = NULL;
    if (query->module == NULL) continue;
    uint32_t known = hp_pair_map_get(&remembered_answers, query->address, query->module->index);
    size_t length;
    if (known > 1) query->name = hp_string_interner_get(&remembered_names, known - 1, &length);
    if (known == 0) list[pending++] = (struct pending){query->address, query->module->index, (uint32_t)i};
  }
  return pending;
}

void hp_symbols_resolve(struct hp_symbol_query *queries, size_t n, const char *executable, struct hp_arena *scratch) {
  struct pending *list = n < UINT32_MAX ? hp_arena_alloc(scratch, n * sizeof list[0]) : NULL;
  if (list == NULL) {
    for (size_t i = 0; i < n; i++) queries[i].name = NULL;
    return;
  }
  size_t pending = answer_known(queries, n, list);
  sort_pending(list, pending);
  struct pass pass = {.queries = queries, .executable = executable, .scratch = scratch};
  pass.targets = pending == 0 ? NULL : hp_arena_alloc(scratch, largest_module(list, pending) * sizeof pass.targets[0]);
  for (size_t first = 0, end; pass.targets != NULL && first < pending; first = end) {
    if (hp_memory_is_full(HP_MEMORY_NAMES)) return;
    end = end_of_module(list, first, pending);
    resolve_module(&pass, &list[first], end - first);
  }
}

bool hp_symbols_is_operator_new(const char *name) {
  static const char *const REST[] = {"", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t"};
  if (strncmp(name, "_Zn", 3) != 0 || (name[3] != 'w' && name[3] != 'a')) return false;
  if (name[4] != 'm' && name[4] != 'j') return false; /* size_t: unsigned long, or int */
  for (size_t i = 0; i < HP_ARRAY_LENGTH(REST); i++) {
    size_t n = strlen(REST[i]);
    /* A compiler may cut a function in parts: _Znwm.cold. */
    if (strncmp(name + 5, REST[i], n) == 0 && (name[5 + n] == 0 || name[5 + n] == '.')) return true;
  }
  return false;
}

void hp_symbols_forget(void) {
  remembered_arena = (struct hp_arena){.chunk_bytes = NAMES_CHUNK_BYTES};
  remembered_names = (struct hp_string_interner){.arena = &remembered_arena};
  remembered_answers = (struct hp_pair_map){.arena = &remembered_arena};
}

size_t hp_symbols_bytes(void) { return remembered_arena.mapped_bytes; }
