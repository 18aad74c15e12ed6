/* SPDX-License-Identifier: MIT
 * publish.h - the settings as they are published to the command (base/published.h). Written at start-up; is_signal_lost by the
 * trigger, whenever it looks. */
#ifndef HP_PUBLISH_H
#define HP_PUBLISH_H

#include "published.h"

extern struct hp_published hp_published;

/* At start-up, when the settings are known and the process is going to be profiled. */
void hp_publish(void);

#endif
