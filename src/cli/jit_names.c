/* SPDX-License-Identifier: MIT
 * jit_names.c - see jit_names.h. The files are hostile: sizes are bounded, records that do not fit are skipped.
 */
#include "jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_memory.h"

enum { NAME_BYTES_MAX = 1024, RECORD_BYTES_MAX = 16 << 20 };

static const size_t entries_max = 4u << 20;

struct entry {
  uint64_t low, high, reach;
  size_t order; /* when it was added */
  char *name;
};

struct hp_jit_names {
  struct entry *entries;
  size_t count, capacity;
  bool is_sorted;
};

struct hp_jit_names *hp_jit_names_new(void) {
  return hp_alloc_zeroed(1, sizeof(struct hp_jit_names));
}

void hp_jit_names_free(struct hp_jit_names *names) {
  if (names == NULL) return;
  for (size_t i = 0; i < names->count; i++) free(names->entries[i].name);
  free(names->entries);
  free(names);
}

static void add(struct hp_jit_names *names, uint64_t low, uint64_t size, const char *name) {
  if (size == 0 || low + size < low || name[0] == '\0' || names->count >= entries_max) return;
  hp_array_reserve(&names->entries, &names->capacity, names->count + 1, sizeof *names->entries);
  names->entries[names->count] = (struct entry){low, low + size, 0, names->count, hp_strdup(name)};
  names->count++;
  names->is_sorted = false;
}

static void read_perf_map(struct hp_jit_names *names, FILE *file) {
  char line[NAME_BYTES_MAX + 64];
  while (names->count < entries_max && fgets(line, sizeof line, file) != NULL) {
    char *end = strchr(line, '\n');
    if (end != NULL)
      *end = '\0';
    else
      for (int byte; (byte = getc(file)) != EOF && byte != '\n';) {
      }
    char *at;
    uint64_t low = strtoull(line, &at, 16);
    if (at == line || *at != ' ') continue;
    char *size_text = at + 1;
    uint64_t size = strtoull(size_text, &at, 16);
    if (at == size_text || *at != ' ') continue;
    add(names, low, size, at + 1);
  }
}

/* The jitdump format, version 1: a header, then records that begin with id, size and time. */
static const uint32_t jitdump_magic = 0x4a695444;

struct jitdump_header {
  uint32_t magic, version, total_size, elf_machine, pad, pid;
  uint64_t timestamp, flags;
};

struct jitdump_record {
  uint32_t id, total_size;
  uint64_t timestamp;
};

enum { JITDUMP_CODE_LOAD = 0 };

struct jitdump_load {
  uint32_t pid, tid;
  uint64_t vma, code_address, code_size, code_index;
};

static void read_jitdump(struct hp_jit_names *names, FILE *file, const struct jitdump_header *header) {
  if (header->version != 1 || header->total_size < sizeof *header || header->total_size > RECORD_BYTES_MAX) return;
  if (fseek(file, header->total_size, SEEK_SET) != 0) return;
  struct jitdump_record record;
  while (fread(&record, sizeof record, 1, file) == 1) {
    if (record.total_size < sizeof record || record.total_size > RECORD_BYTES_MAX) return;
    long next = ftell(file) - (long)sizeof record + (long)record.total_size;
    struct jitdump_load load;
    if (record.id == JITDUMP_CODE_LOAD && record.total_size > sizeof record + sizeof load &&
        fread(&load, sizeof load, 1, file) == 1) {
      char name[NAME_BYTES_MAX];
      size_t room = record.total_size - sizeof record - sizeof load;
      size_t got = fread(name, 1, room < sizeof name - 1 ? room : sizeof name - 1, file);
      name[got] = '\0'; /* the code follows the name's own NUL */
      add(names, load.code_address, load.code_size, name);
    }
    if (fseek(file, next, SEEK_SET) != 0) return;
  }
}

bool hp_jit_names_add(struct hp_jit_names *names, const char *path, const char **why) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat status;
  *why = strerror(errno);
  if (fd < 0) return false;
  bool is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  bool is_trusted = is_regular && (status.st_uid == 0 || status.st_uid == geteuid());
  FILE *file = is_trusted ? fdopen(fd, "r") : NULL;
  *why = !is_regular ? "no regular file" : !is_trusted ? "it belongs to another user" : "cannot read it";
  if (file == NULL) {
    close(fd);
    return false;
  }
  struct jitdump_header header;
  if (fread(&header, sizeof header, 1, file) == 1 && header.magic == jitdump_magic) {
    read_jitdump(names, file, &header);
  } else {
    rewind(file);
    read_perf_map(names, file);
  }
  fclose(file);
  return true;
}

static int compare_entries(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  if (x->low != y->low) return x->low < y->low ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

static void sort(struct hp_jit_names *names) {
  uint64_t reach = 0;
  if (names->count != 0) qsort(names->entries, names->count, sizeof *names->entries, compare_entries);
  for (size_t i = 0; i < names->count; i++) {
    if (names->entries[i].high > reach) reach = names->entries[i].high;
    names->entries[i].reach = reach;
  }
  names->is_sorted = true;
}

const char *hp_jit_names_find(struct hp_jit_names *names, uint64_t address) {
  if (!names->is_sorted) sort(names);
  size_t low = 0, high = names->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (names->entries[middle].low <= address)
      low = middle + 1;
    else
      high = middle;
  }
  const struct entry *best = NULL;
  for (unsigned tries = 0; low > 0 && names->entries[low - 1].reach > address && tries < 1024; low--, tries++) {
    const struct entry *entry = &names->entries[low - 1];
    if (entry->high > address && (best == NULL || entry->order > best->order)) best = entry;
  }
  return best != NULL ? best->name : NULL;
}
