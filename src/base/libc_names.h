/* SPDX-License-Identifier: MIT
 * libc_names.h - lets one build run with every glibc from 2.31 on.
 *
 * glibc 2.34 took libdl and libpthread into libc and gave their names new versions; a library that asks for these does not load
 * with an older one. HP_OLD_NAME asks for the version the name has had all along, and weakly: where libdl or libpthread is not
 * loaded the name is NULL. What is younger than 2.31 must be looked up by name, where hp_libc_is_at_least() says that it is
 * there (a look-up that fails allocates). .ci/install watches what the library asks for. */
#ifndef HP_LIBC_NAMES_H
#define HP_LIBC_NAMES_H

#include <gnu/libc-version.h>

#include "compiler.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HP_LIBC_AS_IT_IS /* a sanitizer's interceptors have no versions */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HP_LIBC_AS_IT_IS
#endif
#endif

/* `x86_64`: the version on this architecture; on aarch64 all begin with its first glibc. */
#if defined(__aarch64__)
#define HP_OLD_VERSION(x86_64) "GLIBC_2.17"
#else
#define HP_OLD_VERSION(x86_64) "GLIBC_" x86_64
#endif
#if defined(HP_LIBC_AS_IT_IS)
#define HP_OLD_NAME(name, x86_64) extern __typeof__(name) name __attribute__((weak))
#else
#define HP_OLD_NAME(name, x86_64)                     \
  extern __typeof__(name) name __attribute__((weak)); \
  __asm__(".symver " #name "," #name "@" HP_OLD_VERSION(x86_64))
#endif

/* musl's loader takes the library for one of its own, whatever it was built for, and a name that it lacks ends the program: so
 * what only glibc has is asked for weakly. */
extern __typeof__(gnu_get_libc_version) gnu_get_libc_version __attribute__((weak));
static inline bool hp_libc_is_glibc(void) { return gnu_get_libc_version != NULL; }

/* Is the C library of this process glibc 2.`minor` or newer? Any thread, async-signal-safe. */
static inline bool hp_libc_is_at_least(unsigned minor) {
  if (!hp_libc_is_glibc()) return false;
  const char *version = gnu_get_libc_version(); /* "2.36" */
  unsigned is = 0;
  if (version[0] != '2' || version[1] != '.') return version[0] > '2';
  for (version += 2; *version >= '0' && *version <= '9'; version++) is = 10 * is + (unsigned)(*version - '0');
  return is >= minor;
}

#endif
