/* SPDX-License-Identifier: MIT
 * operators_in_c.c - claim: operator new and delete, which the library has under a program without a C++ runtime, work there all the
 * same, through malloc; and in a plugin whose runtime came with a dlopen of its own, which nobody else sees, they are that runtime's.
 *   operators_in_c           no runtime
 *   operators_in_c PLUGIN    cxx_plugin.cc */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The linker names of the operators that the program would not have without the library. */
#define WEAK __attribute__((weak))
extern void *_Znwm(size_t) WEAK;
extern void *_Znam(size_t) WEAK;
extern void *_ZnwmRKSt9nothrow_t(size_t, const void *) WEAK;
extern void *_ZnamRKSt9nothrow_t(size_t, const void *) WEAK;
extern void *_ZnwmSt11align_val_t(size_t, size_t) WEAK;
extern void *_ZnamSt11align_val_t(size_t, size_t) WEAK;
extern void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *) WEAK;
extern void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *) WEAK;
extern void _ZdlPv(void *) WEAK;
extern void _ZdaPv(void *) WEAK;
extern void _ZdlPvm(void *, size_t) WEAK;
extern void _ZdaPvm(void *, size_t) WEAK;
extern void _ZdlPvRKSt9nothrow_t(void *, const void *) WEAK;
extern void _ZdaPvRKSt9nothrow_t(void *, const void *) WEAK;
extern void _ZdlPvSt11align_val_t(void *, size_t) WEAK;
extern void _ZdaPvSt11align_val_t(void *, size_t) WEAK;
extern void _ZdlPvmSt11align_val_t(void *, size_t, size_t) WEAK;
extern void _ZdaPvmSt11align_val_t(void *, size_t, size_t) WEAK;
extern void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *, size_t, const void *) WEAK;
extern void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *, size_t, const void *) WEAK;

static const char tag;
enum { SIZE = 100, ALIGNMENT = 128 };
static const size_t TOO_MUCH = SIZE_MAX / 4;

static void *checked(void *block, size_t alignment) {
  if (block == NULL || (uintptr_t)block % alignment != 0) exit(2);
  return memset(block, 1, SIZE);
}

static void use_all(void) {
  _ZdlPv(checked(_Znwm(SIZE), 16));
  _ZdaPv(checked(_Znam(SIZE), 16));
  _ZdlPvm(checked(_Znwm(SIZE), 16), SIZE);
  _ZdaPvm(checked(_Znam(SIZE), 16), SIZE);
  _ZdlPvRKSt9nothrow_t(checked(_ZnwmRKSt9nothrow_t(SIZE, &tag), 16), &tag);
  _ZdaPvRKSt9nothrow_t(checked(_ZnamRKSt9nothrow_t(SIZE, &tag), 16), &tag);
  _ZdlPvSt11align_val_t(checked(_ZnwmSt11align_val_t(SIZE, ALIGNMENT), ALIGNMENT), ALIGNMENT);
  _ZdaPvSt11align_val_t(checked(_ZnamSt11align_val_t(SIZE, ALIGNMENT), ALIGNMENT), ALIGNMENT);
  _ZdlPvmSt11align_val_t(checked(_ZnwmSt11align_val_t(SIZE, ALIGNMENT), ALIGNMENT), SIZE, ALIGNMENT);
  _ZdaPvmSt11align_val_t(checked(_ZnamSt11align_val_t(SIZE, ALIGNMENT), ALIGNMENT), SIZE, ALIGNMENT);
  _ZdlPvSt11align_val_tRKSt9nothrow_t(checked(_ZnwmSt11align_val_tRKSt9nothrow_t(SIZE, ALIGNMENT, &tag), ALIGNMENT),
                                      ALIGNMENT, &tag);
  _ZdaPvSt11align_val_tRKSt9nothrow_t(checked(_ZnamSt11align_val_tRKSt9nothrow_t(SIZE, ALIGNMENT, &tag), ALIGNMENT),
                                      ALIGNMENT, &tag);
  _ZdlPv(checked(realloc(_Znwm(0), SIZE), 16)); /* of nothing: a block all the same */
}

/* What an uncaught bad_alloc would end in. */
static bool aborts_without_memory(void) {
  int status;
  pid_t child = fork();
  if (child == 0) _exit(_Znwm(TOO_MUCH) == NULL ? 1 : 2);
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static int without_runtime(void) {
  if (_Znwm == NULL || _ZdaPvSt11align_val_tRKSt9nothrow_t == NULL) return 3;
  for (int i = 0; i < 20; i++) use_all();
  if (_ZnwmRKSt9nothrow_t(TOO_MUCH, &tag) != NULL) return 4;
  if (_ZnamSt11align_val_tRKSt9nothrow_t(TOO_MUCH, ALIGNMENT, &tag) != NULL) return 5;
  return aborts_without_memory() ? 0 : 6;
}

static int with_plugin(const char *path) {
  void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return 7;
  int (*use)(void) = (int (*)(void))dlsym(plugin, "cxx_plugin_use");
  if (use == NULL) return 8;
  for (int i = 0; i < 20; i++) {
    if (use() != 0) return 10 + use();
  }
  return dlclose(plugin) == 0 ? 0 : 9;
}

int main(int argc, char **argv) { return argc > 1 ? with_plugin(argv[1]) : without_runtime(); }
