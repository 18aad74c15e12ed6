/* SPDX-License-Identifier: MIT
 * dlsym_version.h - the version of dlsym that every C library has, for libraries that stand in front of it and ask dlvsym. */
#ifndef DLSYM_VERSION_H
#define DLSYM_VERSION_H

#if defined(__aarch64__)
#define DLSYM_VERSION "GLIBC_2.17"
#else
#define DLSYM_VERSION "GLIBC_2.2.5" /* there still, whatever the newest is */
#endif

#endif
