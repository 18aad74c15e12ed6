/* SPDX-License-Identifier: MIT
 * mapped_file.h - what the kernel calls a file that is mapped: by its whole path, whatever it was opened by. Async-signal-safe. */
#ifndef HP_MAPPED_FILE_H
#define HP_MAPPED_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The path of the file that is mapped at an address, into to[0..capacity), without a zero; " (deleted)" may stand behind it.
 * Its length; 0: there is none, or /proc cannot be read. */
long hp_mapped_file(uintptr_t address, char *to, size_t capacity);

#endif
