/* SPDX-License-Identifier: MIT
 * recorder.c - see recorder.h. */
#include "recorder.h"

#include "budget.h"
#include "labels.h"
#include "peak_tracker.h"

struct hp_recorder_losses hp_recorder_losses;

static unsigned label_set;
static bool is_tracking;
static uint64_t inuse_fixed_bytes; /* atomic, 1/16 */

/* A dump needs 104 bytes of scratch for a stack, 64 more with a label of its own, and with ages 280 or more. */
void hp_recorder_set_labels(unsigned labels) {
  label_set = labels;
  hp_memory_set_tables_eighths((labels & HP_LABEL_AGE) != 0 ? 2 : labels != 0 ? 3 : 4);
}
unsigned hp_recorder_labels(void) { return label_set; }
void hp_recorder_track_inuse(bool on) { is_tracking = on; }
uint64_t hp_recorder_inuse_bytes(void) { return hp_load_relaxed(&inuse_fixed_bytes) >> HP_BYTE_FRACTION_BITS; }

static void count_loss(uint64_t *counter) { hp_add_relaxed(counter, 1); }

static void add_alloc(struct hp_stack *stack, uint64_t objects, uint64_t bytes) {
  if (HP_UNLIKELY(hp_peak_tracker_is_on())) {
    hp_peak_tracker_add_alloc(stack, objects, bytes);
  } else {
    hp_stack_add_alloc(stack, objects, bytes);
  }
}

static void add_free(struct hp_stack *stack, uint64_t objects, uint64_t bytes) {
  if (HP_UNLIKELY(hp_peak_tracker_is_on())) {
    hp_peak_tracker_add_free(stack, objects, bytes);
  } else {
    hp_stack_add_free(stack, objects, bytes);
  }
}

static struct hp_stack *stack_of(const struct hp_sample *sample, uint64_t label) {
  if (sample->depth == 0) {
    count_loss(&hp_recorder_losses.unwind_failed);
    return hp_stack_table_get(HP_STACK_ID_NONE);
  }
  struct hp_memo *memo = sample->memo;
  if (memo != NULL && memo->value != NULL && memo->key == label && hp_stack_is_open(memo->value)) return memo->value;
  if (sample->is_truncated) count_loss(&hp_recorder_losses.truncated);
  uint32_t fresh = sample->depth - (uint32_t)sample->tail.count;
  uint64_t sum = hp_hash_sum(sample->pcs, fresh, sample->tail.count) + sample->tail.sum;
  struct hp_stack *stack = hp_stack_table_intern_sum(sample->pcs, sample->depth,
                                                     sample->is_truncated ? HP_STACK_TRUNCATED : HP_STACK_WHOLE, label, sum);
  if (stack->id == HP_STACK_ID_FULL) {
    count_loss(&hp_recorder_losses.stack_table_full);
  } else if (memo != NULL) {
    *memo = (struct hp_memo){.value = stack, .key = label};
  }
  return stack;
}

/* heapprof_report_alloc() may say any size; a record has room for 48 bits of it, and what is counted must be what is freed.
 */
static uint64_t clamp_size(uint64_t size) {
  _Static_assert(HP_RECORD_SIZE_MAX == UINT64_MAX >> 16, "size and thread share a word of struct hp_live_record");
  return size > HP_RECORD_SIZE_MAX ? HP_RECORD_SIZE_MAX : size;
}

void hp_recorder_expect(uintptr_t address) { hp_live_table_expect(address); }

void hp_recorder_add(const struct hp_sample *sample) {
  uint64_t size = clamp_size(sample->size);
  uint64_t label = label_set == 0 ? 0 : hp_labels_key(label_set, size);
  struct hp_stack *stack = stack_of(sample, label);
  struct hp_live_record record = {
      .address = sample->address,
      .size_thread = size << 16 | (label & 0xFFFF),
      .weight = sample->weight,
      .stack_id = stack->id,
      .time_seconds = (label_set & HP_LABEL_AGE) != 0 ? hp_labels_now_seconds() : 0,
  };
  uint64_t bytes = hp_fixed_bytes(sample->weight, size);
  add_alloc(stack, hp_fixed_objects(sample->weight), bytes);
  struct hp_live_record missed;
  unsigned result = hp_live_table_insert(&record, &missed);
  if (is_tracking) hp_add_relaxed(&inuse_fixed_bytes, bytes);
  if (HP_UNLIKELY((result & HP_LIVE_REPLACED) != 0)) {
    count_loss(&hp_recorder_losses.missed_frees);
    hp_recorder_count_free(&missed);
  }
  if (HP_UNLIKELY((result & HP_LIVE_INSERTED) == 0)) {
    count_loss(&hp_recorder_losses.live_table_full);
    hp_recorder_count_free(&record);
  }
}

bool hp_recorder_take(uintptr_t address, struct hp_live_record *out) { return hp_live_table_remove(address, out); }

void hp_recorder_count_free(const struct hp_live_record *record) {
  uint64_t bytes = hp_fixed_bytes(record->weight, hp_live_record_size(record));
  add_free(hp_stack_table_get(record->stack_id), hp_fixed_objects(record->weight), bytes);
  if (is_tracking) __atomic_fetch_sub(&inuse_fixed_bytes, bytes, __ATOMIC_RELAXED);
}

void hp_recorder_put_back(const struct hp_live_record *record) {
  if (HP_LIKELY(hp_live_table_put_back(record))) return;
  count_loss(&hp_recorder_losses.live_table_full);
  hp_recorder_count_free(record);
}
