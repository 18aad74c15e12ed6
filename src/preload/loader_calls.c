/* SPDX-License-Identifier: MIT
 * loader_calls.c - see loader_calls.h. */
#include "loader_calls.h"

#include "libc_names.h"

HP_OLD_NAME(dlsym, "2.2.5");
HP_OLD_NAME(dlvsym, "2.2.5");
HP_OLD_NAME(dlerror, "2.2.5");
HP_OLD_NAME(dlopen, "2.2.5");
HP_OLD_NAME(dladdr, "2.2.5");
HP_OLD_NAME(dladdr1, "2.3.3");

/* libc's own way to open a library and look into it; gone with 2.34. */
extern void *__libc_dlopen_mode(const char *file, int mode) __attribute__((weak));
extern void *__libc_dlsym(void *handle, const char *name) __attribute__((weak));
#define LIBC_DLOPEN_MODE ((int)(RTLD_NOW | 0x80000000)) /* glibc's __RTLD_DLOPEN */

struct hp_loader_calls hp_loader = {
    .dlsym = dlsym, .dlvsym = dlvsym, .dlerror = dlerror, .dlopen = dlopen, .dladdr = dladdr, .dladdr1 = dladdr1};

static HP_COLD void find_in_libdl(void) {
  if (__libc_dlopen_mode == NULL || __libc_dlsym == NULL) __builtin_trap();
  void *libdl = __libc_dlopen_mode("libdl.so.2", LIBC_DLOPEN_MODE);
  if (libdl == NULL) __builtin_trap();
#define FIND(name) hp_loader.name = (__typeof__(hp_loader.name))__libc_dlsym(libdl, #name)
  FIND(dlerror);
  FIND(dlopen);
  FIND(dladdr);
  FIND(dladdr1);
  FIND(dlvsym);
  FIND(dlsym);
#undef FIND
}

void hp_loader_calls_find(void) {
  if (HP_UNLIKELY(hp_loader.dlsym == NULL)) find_in_libdl();
}
