/* SPDX-License-Identifier: MIT
 * profile_model.h - a pprof profile in memory: flat arrays that refer to each other by index.
 *
 *   samples[i] --first_location,location_count--> stack_locations[] --> locations[] --first_line,line_count--> lines[]
 *        |                                                                  |                                    |
 *        +--first_label,label_count--> labels[]                             +--mapping--> mappings[]             +--function--> functions[]
 *        +--values[i * type_count + t]
 *
 * Invariants  every index is inside its array or HP_NONE where the comment allows it; every string index is below string_count;
 *             strings[0] is ""; type_count >= 1; first + count of a range never passes the end of its array.
 *             The reader establishes them, so users of a loaded profile need no checks.
 * Ownership   hp_profile_free frees everything; strings are owned by the profile and live as long as it does.
 * Threads     none; one thread at a time.
 * Text        strings are NUL-terminated bytes from an untrusted file: print them with hp_text_print (text_output.h) or the JSON
 *             writer, never raw.
 */
#ifndef HP_PROFILE_MODEL_H
#define HP_PROFILE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HP_NONE UINT32_MAX

/* The most elements an array of the model may have: indices are 32 bit and HP_NONE is taken. */
#define HP_MODEL_COUNT_MAX ((size_t)UINT32_MAX - 1)

struct hp_value_type {
  uint32_t type; /* string index, e.g. "inuse_space" */
  uint32_t unit; /* string index, e.g. "bytes" */
};

struct hp_sample {
  uint32_t first_location; /* into stack_locations, leaf first */
  uint32_t location_count;
  uint32_t first_label; /* into labels */
  uint32_t label_count;
};

struct hp_label {
  uint32_t key;  /* string index */
  uint32_t str;  /* string index; 0: the label is numeric */
  uint32_t unit; /* string index, of num */
  int64_t num;
};

struct hp_mapping {
  uint64_t start; /* addresses in the profiled process */
  uint64_t limit;
  uint64_t offset;   /* in the file, bytes */
  uint32_t file;     /* string index */
  uint32_t build_id; /* string index, hexadecimal, "" if unknown */
  bool has_functions;
  bool has_filenames;
  bool has_line_numbers;
  bool has_inline_frames;
};

struct hp_location {
  uint64_t address;
  uint32_t mapping;    /* HP_NONE: in no mapping */
  uint32_t first_line; /* into lines; innermost inlined frame first, the function that holds the code last */
  uint32_t line_count; /* 0: no symbol known */
  bool is_folded;
};

struct hp_line {
  uint32_t function; /* HP_NONE: unknown */
  int64_t line;
  int64_t column;
};

struct hp_function {
  uint32_t name;        /* string index, demangled where possible */
  uint32_t system_name; /* string index, as the linker knows it */
  uint32_t file;        /* string index */
  int64_t start_line;
};

struct hp_text_arena; /* where the strings' bytes live (profile_model.c) */
struct hp_intern;     /* finds strings and functions again (profile_model.c) */

struct hp_profile {
  struct hp_value_type *types;
  size_t type_count;

  struct hp_sample *samples;
  int64_t *values; /* sample_count rows of type_count */
  size_t sample_count;

  uint32_t *stack_locations;
  size_t stack_location_count;
  struct hp_label *labels;
  size_t label_count;

  struct hp_mapping *mappings; /* [0]: the program itself, if there is any */
  size_t mapping_count;
  struct hp_location *locations;
  size_t location_count;
  struct hp_line *lines;
  size_t line_count;
  struct hp_function *functions;
  size_t function_count;

  const char **strings;
  size_t string_count;
  uint32_t *comments; /* string indices */
  size_t comment_count;

  struct hp_value_type period_type;
  int64_t period;         /* mean bytes between two samples for heap profiles; 0: unknown */
  int64_t time_nanos;     /* wall clock of the snapshot, 0: unknown */
  int64_t duration_nanos; /* 0: unknown */
  uint32_t drop_frames;   /* string index: regular expression of frames to leave out, "" none */
  uint32_t keep_frames;   /* string index: of these, the ones to keep */
  uint32_t default_type;  /* string index, "" none */
  uint32_t doc_url;       /* string index */

  /* Private to profile_model.c. */
  struct hp_text_arena *text;
  struct hp_intern *intern;
  size_t capacity[9];
};

/* An empty profile: one string, "", and nothing else. Aborts the command when out of memory, as all allocation here does. */
struct hp_profile *hp_profile_new(void);

/* Frees the profile and everything it owns; null is fine. */
void hp_profile_free(struct hp_profile *profile);

/* The string of an index. */
static inline const char *hp_profile_text(const struct hp_profile *profile, uint32_t string) {
  return profile->strings[string];
}

/* The value of sample `sample` in column `type`. */
static inline int64_t hp_profile_value(const struct hp_profile *profile, size_t sample, size_t type) {
  return profile->values[sample * profile->type_count + type];
}

/* The column of the sample type called `name`; null or "": the profile's default, else the last column (pprof's rule).
 * HP_NONE if there is none of that name. */
uint32_t hp_profile_type_find(const struct hp_profile *profile, const char *name);

/* The column that counts objects where `type` counts bytes of the same kind (inuse_space -> inuse_objects), and back.
 * HP_NONE if there is none. */
uint32_t hp_profile_type_partner(const struct hp_profile *profile, uint32_t type);

/* The same if the period too is known, in bytes: with both columns and it the error of a figure can be worked out (sampling_error.h).
 * Else HP_NONE; of a difference of samples, too. A period of 1 is one: the error is 0. */
uint32_t hp_profile_error_partner(const struct hp_profile *profile, uint32_t type);

/* True if a comment is just this text. */
bool hp_profile_has_comment(const struct hp_profile *profile, const char *text);

/* Marks a profile made by subtracting, in its comments: what was in both sides is gone from its figures, but not what sampling left of
 * doubt in it, so no errors can be told from it. `of_one_process`: but of what was allocated, of which all of the first is in the second. */
void hp_profile_mark_difference(struct hp_profile *profile, bool of_one_process);
bool hp_profile_is_difference_mark(const char *comment);

/* The index of `text`, appended if it is not there yet. The bytes are copied. */
uint32_t hp_profile_intern(struct hp_profile *profile, const char *text);

/* Appends; each returns the new index. hp_profile_append_string does not look for an equal one (the reader's way in).
 * hp_profile_append_sample copies the stack and the type_count values; labels are appended with hp_profile_append_label, which
 * belongs to the sample appended last. */
uint32_t hp_profile_append_string(struct hp_profile *profile, const char *text, size_t length_bytes);
uint32_t hp_profile_append_type(struct hp_profile *profile, const char *type, const char *unit);
uint32_t hp_profile_append_mapping(struct hp_profile *profile, const struct hp_mapping *mapping);
uint32_t hp_profile_append_function(struct hp_profile *profile, const struct hp_function *function);
uint32_t hp_profile_append_location(struct hp_profile *profile, const struct hp_location *location);
uint32_t hp_profile_append_line(struct hp_profile *profile, const struct hp_line *line);
uint32_t hp_profile_append_sample(struct hp_profile *profile, const uint32_t *locations, size_t location_count,
                                  const int64_t *values);
void hp_profile_append_label(struct hp_profile *profile, const struct hp_label *label);
void hp_profile_append_comment(struct hp_profile *profile, const char *text);

/* The index of a function with just these fields, appended if it is not there yet. */
uint32_t hp_profile_intern_function(struct hp_profile *profile, const struct hp_function *function);

/* Bytes the model holds by now: what a reader's limit is compared with. */
size_t hp_profile_memory_bytes(const struct hp_profile *profile);

/* True if any location has a function name. */
bool hp_profile_has_names(const struct hp_profile *profile);

#endif
