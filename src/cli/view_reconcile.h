/* SPDX-License-Identifier: MIT
 * view_reconcile.h - what a profile's comments say about the memory of the whole process.
 *
 * The library writes lines "heapprof.reconcile key=value key=value ...": bytes in use and their standard error, the
 * allocator's own figures, the resident set. Unknown keys are passed over, a key said twice counts as said last.
 */
#ifndef HP_VIEW_RECONCILE_H
#define HP_VIEW_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile_model.h"
#include "text_output.h"

enum hp_reconcile_key {
  HP_RECONCILE_INUSE,
  HP_RECONCILE_INUSE_ERROR,
  HP_RECONCILE_ALLOCATOR_INUSE,
  HP_RECONCILE_ALLOCATOR_FREE,
  HP_RECONCILE_ALLOCATOR_MMAP,
  HP_RECONCILE_RSS_ANON,
  HP_RECONCILE_RSS_FILE,
  HP_RECONCILE_PROFILER,
  HP_RECONCILE_ALLOCATOR_AGE, /* seconds since the allocator's figures were asked */
  HP_RECONCILE_COUNT
};

struct hp_reconcile {
  bool has_any;
  int64_t bytes[HP_RECONCILE_COUNT]; /* -1: not said; the age is no bytes but seconds */
  char allocator[32];
};

/* The names of the keys, by enum hp_reconcile_key. */
extern const char *const hp_reconcile_names[HP_RECONCILE_COUNT];

/* What the comments of the profile say; the profile may go. */
void hp_view_reconcile_read(const struct hp_profile *profile, struct hp_reconcile *out);

/* The figures that are said, as an object, or null when none is. */
void hp_view_reconcile_write(struct hp_json *json, const char *key, const struct hp_profile *profile);

#endif
