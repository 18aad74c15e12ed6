/* SPDX-License-Identifier: MIT
 * name_demangle.h - linker names to source names: C++ (Itanium), Rust legacy and v0, by libiberty.
 */
#ifndef HP_NAME_DEMANGLE_H
#define HP_NAME_DEMANGLE_H

/* The source name, which the caller frees, or null if the name is not mangled (or not within bounds: a hostile name of a few
 * bytes can stand for gigabytes). Not for several threads at once. */
char *hp_demangle(const char *name);

#endif
