/* SPDX-License-Identifier: MIT
 * view_frames.h - the frames of several profiles under common numbers: equal function (and, by line, file and line), equal
 * number.
 *
 * Names are those of report.h, so a frame here is a row of `heapprof top`. A frame without a name is "0xADDRESS
 * module+0xOFFSET"; between profiles it is known by the part after the address, which address space randomisation leaves
 * alone.
 * Memory      grows with the number of distinct frames; texts are copied, profiles may go.
 */
#ifndef HP_VIEW_FRAMES_H
#define HP_VIEW_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "cli_error.h"
#include "profile_model.h"

struct hp_view_frame {
  uint32_t name;   /* string index in `texts`, as are module and file */
  uint32_t module; /* last part of the path of the binary */
  uint32_t file;
  int64_t line;
};

struct hp_view_frames {
  struct hp_profile *texts; /* keeps the strings; its functions are the keys: functions[i] <-> frames[i] */
  struct hp_view_frame *frames;
  size_t count;
  size_t capacity;
  bool by_line;
};

/* The frames of one profile: indices into frames[]. */
struct hp_view_ids {
  uint32_t *of_line;     /* profile->lines[i] */
  uint32_t *of_location; /* profile->locations[i], used where it has no lines */
};

/* Empty. hp_view_frames_free frees all of it, not the struct. */
void hp_view_frames_init(struct hp_view_frames *frames, bool by_line);
void hp_view_frames_free(struct hp_view_frames *frames);

/* Adds the profile's frames. 0 and *out (hp_view_ids_free), or -1 and a sentence. */
int hp_view_frames_add(struct hp_view_frames *frames, const struct hp_profile *profile, struct hp_view_ids *out,
                       struct hp_error *error);
void hp_view_ids_free(struct hp_view_ids *ids);

/* The stack of a sample, root first, inlined frames apart: calls visit for each frame until it returns false. */
void hp_view_stack_walk(const struct hp_profile *profile, const struct hp_view_ids *ids, size_t sample,
                        bool (*visit)(void *context, uint32_t frame), void *context);

static inline const char *hp_view_text(const struct hp_view_frames *frames, uint32_t text) {
  return hp_profile_text(frames->texts, text);
}

#endif
