/* SPDX-License-Identifier: MIT
 * counters.c - where the counters of a coverage build live (preset coverage). Linked into every instrumented program and library in
 * place of clang's own start-up, which would allocate, read variables and write at exit only: not for a library whose processes
 * end by _exit and SIGKILL, and whose tests count descriptors and allocations.
 *
 * clang's counters are one section of the image. A file of the image's build id is mapped over it, shared: each process of the
 * image counts in the same pages, which outlive all of them. Nothing stays open, nothing is allocated, and forks, raw clones and
 * kills need no care. What was counted before this ran is added. Where the file cannot be had (a fault injected, another root) the
 * process counts for itself and is not in the figures.
 *
 * With COVERAGE_WRITE=FILE in the environment the process writes all counts as one of clang's raw profiles to FILE, and ends. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <elf.h>

#include "sys.h"

enum { PAGE = 4096, ID_MAX = 32 };

/* Its presence keeps clang's start-up out. */
int __llvm_profile_runtime __attribute__((visibility("hidden")));

/* The last of the section, so that its pages hold nothing else. */
__attribute__((section("__llvm_prf_cnts"), aligned(PAGE), used)) static char filler[PAGE];
extern char first_counter[] __asm__("__start___llvm_prf_cnts") __attribute__((visibility("hidden")));
extern char counters_end[] __asm__("__stop___llvm_prf_cnts") __attribute__((visibility("hidden")));
extern const char image[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));

uint64_t __llvm_profile_get_size_for_buffer(void);
int __llvm_profile_write_buffer(char *to);

static const unsigned char *build_id(size_t *n) {
  const Elf64_Ehdr *header = (const void *)image;
  const Elf64_Phdr *segment = (const void *)(image + header->e_phoff);
  for (int i = 0; i < header->e_phnum; i++) {
    if (segment[i].p_type != PT_NOTE) continue;
    for (const char *at = image + segment[i].p_vaddr, *end = at + segment[i].p_memsz; at + sizeof(Elf64_Nhdr) <= end;) {
      const Elf64_Nhdr *note = (const void *)at;
      const char *name = at + sizeof *note, *value = name + ((note->n_namesz + 3) & ~3U);
      *n = note->n_descsz;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) return (const void *)value;
      at = value + ((note->n_descsz + 3) & ~3U);
    }
  }
  return NULL;
}

static int open_file(size_t size) {
  char path[sizeof COVERAGE_FOLDER + 1 + 2 * ID_MAX] = COVERAGE_FOLDER "/", *to = path + sizeof COVERAGE_FOLDER;
  size_t n;
  const unsigned char *id = build_id(&n);
  if (id == NULL || n > ID_MAX) return -1;
  for (size_t i = 0; i < n; i++) {
    *to++ = "0123456789abcdef"[id[i] >> 4];
    *to++ = "0123456789abcdef"[id[i] & 15];
  }
  int file = hp_sys_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file >= 0 && hp_syscall2(SYS_ftruncate, file, size) != 0) {
    hp_sys_close(file);
    return -1;
  }
  hp_syscall2(SYS_fchmod, file, 0666); /* whatever the umask: another user's process counts there too */
  return file;
}

static void share_counters(void) {
  size_t size = (size_t)(counters_end - first_counter);
  if (((uintptr_t)first_counter | size) % PAGE != 0) __builtin_trap(); /* linked in the wrong order */
  int file = open_file(size);
  if (file < 0) return;
  uint64_t *shared = hp_sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  hp_sys_close(file);
  if (hp_sys_failed(shared)) return;
  const uint64_t *early = (const void *)first_counter;
  for (size_t i = 0; i < size / sizeof *early; i++) {
    if (early[i] != 0) __atomic_fetch_add(&shared[i], early[i], __ATOMIC_RELAXED);
  }
  hp_syscall6(SYS_mremap, (long)shared, (long)size, (long)size, MREMAP_MAYMOVE | MREMAP_FIXED, (long)first_counter, 0);
}

static void write_profile(const char *path) {
  size_t size = __llvm_profile_get_size_for_buffer(), done = 0;
  char *buffer = hp_sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int file = hp_sys_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (hp_sys_failed(buffer) || file < 0 || __llvm_profile_write_buffer(buffer) != 0) hp_syscall1(SYS_exit_group, 1);
  while (done < size) {
    long n = hp_sys_write(file, buffer + done, size - done);
    if (n <= 0) hp_syscall1(SYS_exit_group, 1);
    done += (size_t)n;
  }
  hp_syscall1(SYS_exit_group, 0);
}

__attribute__((constructor(101))) static void coverage_constructor(int argc, char **argv, char **environment) {
  (void)argc;
  (void)argv;
  static const char variable[] = "COVERAGE_WRITE=";
  share_counters();
  for (; environment != NULL && *environment != NULL; environment++) {
    if (strncmp(*environment, variable, sizeof variable - 1) == 0) write_profile(*environment + sizeof variable - 1);
  }
}
