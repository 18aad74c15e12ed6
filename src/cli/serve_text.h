/* SPDX-License-Identifier: MIT
 * serve_text.h - the texts heapprof serve answers with: a profile as text, Prometheus metrics, the index page.
 */
#ifndef HP_SERVE_TEXT_H
#define HP_SERVE_TEXT_H

#include <stdio.h>

#include "profile_model.h"

extern const char hp_serve_index[]; /* HTML */

/* For ?debug=1: the legacy text form of heap profiles, which people and pprof read; figures are estimates, so it names no
 * rate. */
void hp_serve_text_write(FILE *out, const struct hp_profile *profile);

/* Prometheus text: sums of the columns, and every number of the profile's comments "heapprof.TOPIC KEY=NUMBER" as
 * heapprof_TOPIC_KEY (losses: heapprof_lost_total{cause="KEY"}). */
void hp_serve_metrics_write(FILE *out, const struct hp_profile *profile);

#endif
