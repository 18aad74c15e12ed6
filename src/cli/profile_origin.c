/* SPDX-License-Identifier: MIT
 * profile_origin.c - see profile_origin.h.
 */
#include "profile_origin.h"

#include <stdlib.h>
#include <string.h>

#include "cli_error.h"
#include "cli_memory.h"
#include "path_clean.h"

static bool has_comment(const struct hp_profile *profile, const char *start) {
  for (size_t i = 0; i < profile->comment_count; i++)
    if (strncmp(hp_profile_text(profile, profile->comments[i]), start, strlen(start)) == 0) return true;
  return false;
}

/* Wall clock of the process's start, nanoseconds; 0: not known. */
static int64_t start_of(const struct hp_profile *profile) {
  if (!has_comment(profile, "heapprof.version ") || has_comment(profile, "sum of ")) return 0;
  if (profile->duration_nanos <= 0 || profile->time_nanos <= profile->duration_nanos) return 0;
  return profile->time_nanos - profile->duration_nanos;
}

int64_t hp_origin_pid_in_name(const char *path, int64_t time_nanos) {
  const char *name = hp_path_base_name(path), *end = NULL;
  for (const char *at = name; (at = strstr(at, ".pb")) != NULL; at++) end = at;
  if (end == NULL) return 0;
  const char *at = end;
  while (at > name && at[-1] >= 'a' && at[-1] <= 'z') at--;
  if (at != end && at > name && at[-1] == '.') end = at - 1; /* the kind */
  for (int numbers = 0; numbers < 2; numbers++) {
    for (at = end; at > name && at[-1] >= '0' && at[-1] <= '9';) at--;
    if (at == end || end - at > 18 || at == name || at[-1] != '.') return 0;
    if (numbers == 0) end = at - 1;
  }
  int64_t pid = strtoll(at, NULL, 10), seconds = time_nanos / 1000000000;
  return llabs(pid - seconds) > 10 * 86400 ? pid : 0;
}

static uint64_t key_of(const struct hp_profile *profile, int64_t start_nanos, int64_t pid) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  if (profile->mapping_count != 0) {
    const struct hp_mapping *program = &profile->mappings[0];
    const char *text = hp_profile_text(profile, program->build_id != 0 ? program->build_id : program->file);
    for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  }
  return hash ^ (uint64_t)start_nanos ^ (uint64_t)pid * 0x9e3779b97f4a7c15u;
}

uint32_t hp_origins_add(struct hp_origins *origins, const struct hp_profile *profile, const char *path) {
  int64_t start_nanos = start_of(profile);
  if (start_nanos == 0) return HP_NONE;
  uint64_t key = key_of(profile, start_nanos, hp_origin_pid_in_name(path, profile->time_nanos));
  uint32_t index = hp_id_map_find(&origins->map, key);
  if (index == HP_NONE) {
    index = (uint32_t)origins->count++;
    hp_id_map_add(&origins->map, key, index);
    hp_array_reserve(&origins->list, &origins->capacity, origins->count, sizeof *origins->list);
    origins->list[index] = (struct hp_origin){.last_path = path};
  }
  struct hp_origin *origin = &origins->list[index];
  origin->profile_count++;
  if (profile->time_nanos >= origin->last_time_nanos) {
    origin->last_time_nanos = profile->time_nanos;
    origin->last_path = path;
  }
  return index;
}

void hp_origins_note_sum(const struct hp_origins *origins) {
  const struct hp_origin *most = NULL;
  for (size_t i = 0; i < origins->count; i++)
    if (most == NULL || origins->list[i].profile_count > most->profile_count) most = &origins->list[i];
  if (most != NULL && most->profile_count > 1)
    hp_note("%zu profiles of one process were summed: its blocks are counted up to %zu times; its last alone is %s",
            most->profile_count, most->profile_count, most->last_path);
}

void hp_origins_free(struct hp_origins *origins) {
  free(origins->list);
  hp_id_map_free(&origins->map);
  *origins = (struct hp_origins){0};
}
