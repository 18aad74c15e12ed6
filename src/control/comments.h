/* SPDX-License-Identifier: MIT
 * comments.h - the comment lines of a profile: version, rate, samples, losses by cause, error bars, reconciliation with RSS,
 * what cannot be seen.
 * Syntax (docs/profile-comments.md): `heapprof.<topic> key=value key=value ...`, numbers in units named by the key.
 * Async-signal-safe. */
#ifndef HP_COMMENTS_H
#define HP_COMMENTS_H

#include "books.h"
#include "format.h"

/* Lines for a profile of this reading, in the arena. is_past: it is of a peak that is over; then what is known of now alone is left out.
 * Returns their number; *out_lines NULL and 0 when there is no memory. */
size_t hp_comments_make(const struct hp_reading *reading, bool is_peak, bool is_past, struct hp_arena *arena,
                        const char *const **out_lines);

/* " key=value" for each cause of loss that is not zero. Whether there was one. */
bool hp_comments_losses(struct hp_text *out);

#endif
