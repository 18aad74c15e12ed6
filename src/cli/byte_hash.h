/* SPDX-License-Identifier: MIT
 * byte_hash.h - the hash of bytes for tables in memory. Seeded once a process, so that no file can be made whose strings all collide.
 */
#ifndef HP_BYTE_HASH_H
#define HP_BYTE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* From any thread. */
uint64_t hp_byte_hash(const void *data, size_t length_bytes);

#endif
