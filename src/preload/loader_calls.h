/* SPDX-License-Identifier: MIT
 * loader_calls.h - dlsym and its kin, with every glibc.
 *
 * From glibc 2.34 on they are in libc. Before, they are in libdl, which many programs do not load, and which we do not ask for,
 * since loading its empty successor would cost every exec'd program of today some 30 us: there libdl is opened at the first call
 * of the allocator, in the way libc does it for itself. */
#ifndef HP_LOADER_CALLS_H
#define HP_LOADER_CALLS_H

#include <dlfcn.h>

/* Never NULL after hp_loader_calls_find(). The caller that dlsym(RTLD_NEXT) sees must be this library: no tail call of `dlsym`
 * in an exported function. */
struct hp_loader_calls {
  void *(*dlsym)(void *handle, const char *name);
  void *(*dlvsym)(void *handle, const char *name, const char *version);
  char *(*dlerror)(void);
  void *(*dlopen)(const char *file, int mode);
  int (*dladdr)(const void *address, Dl_info *out);
  int (*dladdr1)(const void *address, Dl_info *out, void **extra, int flags);
};
extern struct hp_loader_calls hp_loader;

/* Idempotent; where the functions are in libc there is nothing to do. May allocate by the program's names. Ends the process
 * where no way leads to them: no allocator could be found. */
void hp_loader_calls_find(void);

#endif
