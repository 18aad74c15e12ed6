/* SPDX-License-Identifier: MIT
 * labels.h - what splits the rows of a stack: the size of the block, the name of the allocating thread, the age.
 *
 * Size and thread are part of a stack entry's key (so that the alloc columns of each row are exact); the age is looked at
 * when a dump is made. Distinct sizes are kept exactly up to HP_LABEL_SIZES_EXACT, larger ones are rounded down to eight
 * steps a doubling, at most HP_LABEL_NAMES thread names are told apart, and ages in HP_LABEL_AGES buckets; so the number of
 * rows is bounded.
 * Threads     any, in the profiler's own section.
 * Locks       one, for a thread name not met before; taken with none of the tables' held, and before fork. */
#ifndef HP_LABELS_H
#define HP_LABELS_H

#include "compiler.h"

enum { HP_LABEL_SIZES_EXACT = 1024, HP_LABEL_NAMES = 1024, HP_LABEL_NAME_BYTES = 16, HP_LABEL_AGES = 8 };

/* Key of a stack entry: size label << 16 | id of the thread's name; the parts not in `labels` are 0. The size label is
 * the label's value + 1, so that 0 says "no size label". */
uint64_t hp_labels_key(unsigned labels, uint64_t size);
/* The value of the label `bytes` for a block of this size. */
uint64_t hp_labels_size_class(uint64_t size);
/* Name of a thread name id (1...); id 0 and names past the limit: "[other]". Async-signal-safe. */
const char *hp_labels_thread_name(uint16_t id);

/* The bucket of an age, below HP_LABEL_AGES, and the words of one. Pure; async-signal-safe. */
uint32_t hp_labels_age_bucket(uint32_t seconds);
const char *hp_labels_age_name(uint32_t bucket);

/* CLOCK_MONOTONIC in seconds: what ages are counted from. Async-signal-safe. */
uint32_t hp_labels_now_seconds(void);

/* Around fork. */
void hp_labels_lock(void);
void hp_labels_unlock(void);

#endif
