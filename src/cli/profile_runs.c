/* SPDX-License-Identifier: MIT
 * profile_runs.c - see profile_runs.h.
 *
 * Runs lie in a ring of slots, each EMPTY -> CUT (whole fields are there) -> UNPACKING -> UNPACKED -> taken by the user, given back at
 * its next call. A slot begins with what was left over behind the run before; nobody writes there while it is copied.
 *   with a thread     it cuts as long as a slot is free, else it unpacks the newest slot that is only CUT. The user takes the oldest, and
 *                     unpacks it itself where the thread has not got to it.
 *   without           the user cuts and unpacks one slot at a time.
 * A run is RUN_BYTES at most, or a single field that is longer: no run is cut behind such a one before it is given back.
 *
 * Lock  `lock` guards the counts, the flags and each slot's state. The rest of a slot belongs to who cuts it, then to who made it
 *       UNPACKING, then to the user. `result` and `error` are the cutter's until is_over.
 * Bounds  a field RECORD_BYTES_MAX; buffers grow with the bytes that came, never with a length that was claimed. Unpacked, two bytes of
 *         a hostile file become a hundred: so one long field at a time, nothing kept of it, and the source's limit for what it becomes.
 */
#include "profile_runs.h"

#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"
#include "side_thread.h"
#include "units.h"

enum { SLOTS = 4, RUN_BYTES = 128 * 1024, RECORD_BYTES_MAX = 16 << 20, ARENA_BLOCK_BYTES = 512 * 1024 };

/* protobuf-c frees piece by piece what the next run can simply overwrite. */
struct arena {
  struct arena_block {
    struct arena_block *next;
    size_t used, size;
    max_align_t data[];
  } * block;
  uint64_t held_bytes, limit_bytes;
  bool is_over_limit;
};

struct slot {
  enum { EMPTY, CUT, UNPACKING, UNPACKED } state;
  uint8_t *bytes;
  size_t room, held;
  size_t length; /* of the run; behind it, up to held: the start of the next */
  struct arena arena;
  const Perftools__Profiles__Profile *message; /* null: no profile */
};

struct hp_profile_runs {
  struct hp_byte_source *source;
  struct slot slots[SLOTS];
  struct hp_side_thread side;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t cut_count, taken_count; /* slots ever filled, and given back */
  bool is_over;                    /* no slot follows: `result` says why */
  bool is_stopped;                 /* the user wants no more */
  bool is_lent;                    /* the user has the slot of taken_count */
  int result;
  struct hp_error error;
};

int hp_profile_malformed(const char *name, const char *why, struct hp_error *error) {
  return hp_error_set(error, "%s: not a pprof profile: %s", name, why);
}

int hp_profile_too_large(const char *name, uint64_t limit_bytes, struct hp_error *error) {
  char limit[HP_UNITS_MAX];
  return hp_error_set(error, "%s: takes more than %s of memory (HEAPPROF_READ_LIMIT raises the limit)", name,
                      hp_units_format((int64_t)limit_bytes, "bytes", limit));
}

/* For protobuf-c; null, which fails the unpacking, beyond the limit. */
static void *arena_alloc(void *context, size_t size) {
  struct arena *arena = context;
  size = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
  struct arena_block *block = arena->block;
  if (block == NULL || block->size - block->used < size) {
    size_t room = size > ARENA_BLOCK_BYTES ? size : ARENA_BLOCK_BYTES;
    arena->is_over_limit = arena->held_bytes + size > arena->limit_bytes;
    if (arena->is_over_limit) return NULL;
    block = hp_alloc(sizeof *block + room);
    arena->held_bytes += room;
    *block = (struct arena_block){arena->block, 0, room};
    arena->block = block;
  }
  void *result = (char *)block->data + block->used;
  block->used += size;
  return result;
}

static void arena_free(void *context, void *pointer) {
  (void)context;
  (void)pointer;
}

/* Empties the arena; keeps its last block unless all is to go. */
static void arena_reset(struct arena *arena, bool all) {
  struct arena_block *block = arena->block;
  struct arena_block *kept = !all && block != NULL && block->size <= ARENA_BLOCK_BYTES ? block : NULL;
  while (block != NULL) {
    struct arena_block *next = block->next;
    if (block != kept) free(block);
    block = next;
  }
  if (kept != NULL) {
    kept->next = NULL;
    kept->used = 0;
  }
  arena->block = kept;
  arena->held_bytes = kept != NULL ? kept->size : 0;
}

/* Bytes of the varint at `at`, its value in *value; 0: not all there yet; SIZE_MAX: no varint. */
static size_t varint(const uint8_t *at, size_t left, uint64_t *value) {
  *value = 0;
  for (size_t i = 0; i < 10; i++) {
    if (i == left) return 0;
    *value |= (uint64_t)(at[i] & 0x7f) << (7 * i);
    if (at[i] < 0x80) return i + 1;
  }
  return SIZE_MAX;
}

/* Bytes of the field at `at`: 0: not all there yet; SIZE_MAX: no field. Lengths may be beyond `left`. */
static size_t field_length(const uint8_t *at, size_t left) {
  uint64_t tag, payload;
  size_t head = varint(at, left, &tag);
  if (head == 0 || head == SIZE_MAX) return head;
  if (tag >> 3 == 0 || tag > UINT32_MAX) return SIZE_MAX;
  size_t more;
  switch (tag & 7) {
    case 0: more = varint(at + head, left - head, &payload); return more == 0 || more == SIZE_MAX ? more : head + more;
    case 1: return head + 8;
    case 2:
      more = varint(at + head, left - head, &payload);
      if (more == 0 || more == SIZE_MAX) return more;
      return payload > RECORD_BYTES_MAX ? SIZE_MAX : head + more + (size_t)payload;
    case 5: return head + 4;
    default: return SIZE_MAX;
  }
}

/* Bytes of the whole fields at the start; SIZE_MAX: that is no profile. */
static size_t whole_fields(const uint8_t *bytes, size_t length) {
  size_t at = 0;
  while (at < length) {
    size_t field = field_length(bytes + at, length - at);
    if (field == SIZE_MAX) return SIZE_MAX;
    if (field == 0 || field > length - at) break;
    at += field;
  }
  return at;
}

/* What people have lying about besides, the text that jemalloc, gperftools and Go's ?debug=1 write, and what files come packed in: what to
 * say of it. Null: none of these; no profile begins like one. */
static const char *other_format(const uint8_t *bytes, size_t length) {
  static const char text_form[] = "it is the text form, of jemalloc or gperftools; pprof -proto PROGRAM FILE converts it";
  static const struct {
    const char *beginning, *what;
  } formats[] = {{"heap_v2/", text_form},
                 {"heap profile:", text_form},
                 {"--- ", text_form},
                 {"\x28\xb5\x2f\xfd", "it is compressed by zstd; zstd -dc FILE | heapprof top - reads it"},
                 {"\xfd"
                  "7zXZ",
                  "it is compressed by xz; xz -dc FILE | heapprof top - reads it"},
                 {"PK\x03\x04", "it is a zip archive; unzip -p FILE | heapprof top - reads the profile in it"},
                 {"\x7f"
                  "ELF",
                  "it is a program or library"}};
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    size_t needed = strlen(formats[i].beginning);
    if (length >= needed && memcmp(bytes, formats[i].beginning, needed) == 0) return formats[i].what;
  }
  return NULL;
}

/* What a long field left behind is not worth keeping. */
static void trim(struct slot *slot) {
  if (slot->room <= RUN_BYTES) return;
  free(slot->bytes);
  slot->bytes = NULL;
  slot->room = 0;
}

/* Fills the slot with a run and what comes behind it; a run of no bytes is the end. `before` was given back if it is long. */
static int cut(struct hp_profile_runs *runs, struct slot *slot, struct slot *before, struct hp_error *error) {
  const char *name = runs->source->name;
  bool is_first = runs->source->produced_bytes == 0;
  size_t wanted = RUN_BYTES;
  slot->held = before->held - before->length;
  slot->length = 0;
  hp_array_reserve(&slot->bytes, &slot->room, RUN_BYTES, 1);
  if (slot->held != 0) memcpy(slot->bytes, before->bytes + before->length, slot->held);
  trim(before);
  for (;;) {
    size_t got, room = wanted < slot->room ? wanted : slot->room;
    if (hp_byte_source_read(runs->source, slot->bytes + slot->held, room - slot->held, &got, error) != 0) return -1;
    slot->held += got;
    if (got != 0 && slot->held < room) continue; /* full runs only: fewer of them */
    const char *other = is_first ? other_format(slot->bytes, slot->held) : NULL;
    if (other != NULL) return hp_profile_malformed(name, other, error);
    if (is_first && got == 0 && slot->held == 0) return hp_profile_malformed(name, "it is empty", error);
    slot->length = whole_fields(slot->bytes, slot->held);
    if (slot->length == SIZE_MAX) return hp_profile_malformed(name, "malformed protobuf", error);
    if (slot->length != 0) return 0;
    if (got == 0) return slot->held == 0 ? 0 : hp_profile_malformed(name, "it ends in the middle of a field", error);
    wanted = field_length(slot->bytes, slot->held);
    if (slot->held == slot->room) hp_array_reserve(&slot->bytes, &slot->room, slot->room + 1, 1);
  }
}

/* Fills the next slot. Returns false when there is no further. */
static bool cut_next(struct hp_profile_runs *runs) {
  struct slot *slot = &runs->slots[runs->cut_count % SLOTS];
  runs->result = cut(runs, slot, &runs->slots[(runs->cut_count + SLOTS - 1) % SLOTS], &runs->error);
  return runs->result == 0 && slot->length != 0;
}

static void cut_next_unlocked(struct hp_profile_runs *runs) {
  pthread_mutex_unlock(&runs->lock);
  bool is_there = cut_next(runs);
  pthread_mutex_lock(&runs->lock);
  if (is_there)
    runs->slots[runs->cut_count++ % SLOTS].state = CUT;
  else
    runs->is_over = true;
}

/* The arena is as the user gave it back. */
static void unpack_unlocked(struct hp_profile_runs *runs, struct slot *slot) {
  slot->state = UNPACKING;
  pthread_mutex_unlock(&runs->lock);
  slot->arena.is_over_limit = false;
  ProtobufCAllocator allocator = {arena_alloc, arena_free, &slot->arena};
  slot->message = perftools__profiles__profile__unpack(&allocator, slot->length, slot->bytes);
  pthread_mutex_lock(&runs->lock);
  slot->state = UNPACKED;
}

/* May the thread cut? Behind a long field only when that is given back. */
static bool is_slot_free(const struct hp_profile_runs *runs) {
  uint64_t ahead = runs->cut_count - runs->taken_count;
  return ahead == 0 || (ahead < SLOTS && runs->slots[(runs->cut_count - 1) % SLOTS].length <= RUN_BYTES);
}

/* The newest slot that is cut only: the user, who goes from the oldest on, gets there last. Null: none. */
static struct slot *slot_to_unpack(struct hp_profile_runs *runs) {
  for (uint64_t number = runs->cut_count; number > runs->taken_count + (runs->is_lent ? 1 : 0); number--)
    if (runs->slots[(number - 1) % SLOTS].state == CUT) return &runs->slots[(number - 1) % SLOTS];
  return NULL;
}

static void *work_ahead(void *context) {
  struct hp_profile_runs *runs = context;
  pthread_mutex_lock(&runs->lock);
  while (!runs->is_stopped) {
    struct slot *slot;
    if (!runs->is_over && is_slot_free(runs))
      cut_next_unlocked(runs);
    else if ((slot = slot_to_unpack(runs)) != NULL)
      unpack_unlocked(runs, slot);
    else if (runs->is_over)
      break;
    else {
      pthread_cond_wait(&runs->changed, &runs->lock);
      continue;
    }
    pthread_cond_signal(&runs->changed);
  }
  pthread_mutex_unlock(&runs->lock);
  return NULL;
}

struct hp_profile_runs *hp_profile_runs_new(struct hp_byte_source *source, bool ahead) {
  struct hp_profile_runs *runs = hp_alloc_zeroed(1, sizeof *runs);
  runs->source = source;
  pthread_mutex_init(&runs->lock, NULL);
  pthread_cond_init(&runs->changed, NULL);
  for (size_t i = 0; i < SLOTS; i++) runs->slots[i].arena.limit_bytes = source->limit_bytes;
  if (ahead) hp_side_thread_start(&runs->side, work_ahead, runs);
  return runs;
}

/* The oldest slot that was not given back, unpacked; null: there is none any more. */
static struct slot *next_slot(struct hp_profile_runs *runs) {
  if (!runs->side.is_there && !runs->is_over) cut_next_unlocked(runs);
  while (runs->cut_count == runs->taken_count && !runs->is_over) pthread_cond_wait(&runs->changed, &runs->lock);
  if (runs->cut_count == runs->taken_count) return NULL;
  struct slot *slot = &runs->slots[runs->taken_count % SLOTS];
  if (slot->state == CUT) unpack_unlocked(runs, slot);
  while (slot->state != UNPACKED) pthread_cond_wait(&runs->changed, &runs->lock);
  return slot;
}

static int fail_unpacking(const struct hp_profile_runs *runs, const struct slot *slot, struct hp_error *error) {
  const char *name = runs->source->name;
  if (!slot->arena.is_over_limit) return hp_profile_malformed(name, "malformed protobuf", error);
  return hp_profile_too_large(name, slot->arena.limit_bytes, error);
}

int hp_profile_runs_next(struct hp_profile_runs *runs, const Perftools__Profiles__Profile **run, struct hp_error *error) {
  if (runs->is_lent) arena_reset(&runs->slots[runs->taken_count % SLOTS].arena, false);
  pthread_mutex_lock(&runs->lock);
  if (runs->is_lent) {
    runs->taken_count++;
    pthread_cond_signal(&runs->changed);
  }
  const struct slot *slot = next_slot(runs);
  runs->is_lent = slot != NULL;
  pthread_mutex_unlock(&runs->lock);
  *run = slot != NULL ? slot->message : NULL;
  if (slot != NULL) return *run != NULL ? 0 : fail_unpacking(runs, slot, error);
  if (runs->result != 0 && error != NULL) *error = runs->error;
  return runs->result;
}

void hp_profile_runs_free(struct hp_profile_runs *runs) {
  if (runs->side.is_there) {
    pthread_mutex_lock(&runs->lock);
    runs->is_stopped = true;
    pthread_cond_signal(&runs->changed);
    pthread_mutex_unlock(&runs->lock);
    hp_side_thread_join(&runs->side);
  }
  for (size_t i = 0; i < SLOTS; i++) {
    free(runs->slots[i].bytes);
    arena_reset(&runs->slots[i].arena, true);
  }
  pthread_cond_destroy(&runs->changed);
  pthread_mutex_destroy(&runs->lock);
  free(runs);
}
