/* SPDX-License-Identifier: MIT
 * stack_table.h - each distinct stack (and label) once, with its four counters; the entry is its own key.
 *
 * Invariants  insert-only: an entry is never freed nor moved, so a pointer or an id stays good for the life of the process.
 *             An open entry (closed_set 0) is unique for its key. A closed one belongs to modules some of which have been
 *             unloaded: it keeps its counters and is not found, until just these modules are back; so a program that loads
 *             and unloads a plugin for ever has the plugin's stacks once.
 *             freed <= allocated in both counters: the alloc side is added before the record is visible, the free side after
 *             it has been taken out; readers load the free side first. No bytes without objects: objects are added before
 *             bytes, readers load bytes before objects.
 * Locks       inserts: one lock. Look-ups, counters and walks take none.
 * Units       counters are fixed point: objects in 1/1024, bytes in 1/16 (weights are no whole numbers; sums of fixed point are
 *             exact in any order, so what is freed leaves nothing behind). They saturate.
 * Memory      chunks of the private heap; at the ceiling a new stack is refused and its sample lands on a pseudo entry.
 * Cost        64 bytes and 8 a frame; 12 to 16 more of index. */
#ifndef HP_STACK_TABLE_H
#define HP_STACK_TABLE_H

#include "compiler.h"

enum { HP_OBJECT_FRACTION_BITS = 10, HP_BYTE_FRACTION_BITS = 4 };

/* What a row is when it has no whole stack. */
enum hp_stack_kind { HP_STACK_WHOLE, HP_STACK_TRUNCATED, HP_STACK_NONE, HP_STACK_TABLE_FULL };

struct hp_stack {
  uint64_t hash;
  uint64_t label;         /* size label << 16 | thread label, see hp_labels_key(); 0: none */
  uint64_t alloc_objects; /* atomic, 1/1024 */
  uint64_t alloc_bytes;   /* atomic, 1/16 */
  uint64_t freed_objects; /* atomic */
  uint64_t freed_bytes;   /* atomic */
  uint32_t next;          /* atomic: id of the next entry of the bucket, or HP_NO_STACK */
  uint32_t id;
  uint32_t closed_set; /* atomic: 0 open, else the modules it belongs to (unwind/module_set.h) */
  uint16_t depth;
  uint8_t kind; /* enum hp_stack_kind */
  uint8_t unused_;
  uintptr_t pcs[]; /* return addresses, leaf first */
};

enum { HP_NO_STACK = 0xFFFFFFFFu };

/* Pseudo entries: always there, never full. */
enum { HP_STACK_ID_NONE = 0, HP_STACK_ID_FULL = 1, HP_STACK_ID_FIRST = 2 };

/* The entry for this key, made if need be. depth 0: the entry of [no stack]. At the ceiling: the entry of [stack table full].
 * depth <= 65535 (HEAPPROF_MAX_DEPTH ends far below); sum: hp_hash_sum(pcs, depth, 0). Any thread inside the profiler's own
 * section. */
struct hp_stack *hp_stack_table_intern_sum(const uintptr_t *pcs, uint32_t depth, enum hp_stack_kind kind, uint64_t label,
                                           uint64_t sum);

/* Tests: the same without the sum, for any depth. */
struct hp_stack *hp_stack_table_intern(const uintptr_t *pcs, uint32_t depth, enum hp_stack_kind kind, uint64_t label);

/* Does this entry still stand for its stack? Any thread. */
static inline bool hp_stack_is_open(const struct hp_stack *stack) { return hp_load_relaxed(&stack->closed_set) == 0; }

/* By id, which must have come from an entry. Any thread, async-signal-safe. */
struct hp_stack *hp_stack_table_get(uint32_t id);
/* Ids 0 <= id < count exist. Async-signal-safe. */
uint32_t hp_stack_table_count(void);

/* Both sides of the books, in fixed point. Any thread, async-signal-safe. */
void hp_stack_add_alloc(struct hp_stack *stack, uint64_t objects, uint64_t bytes);
void hp_stack_add_free(struct hp_stack *stack, uint64_t objects, uint64_t bytes);

/* The four counters of one moment: 0 <= freed <= alloc, and no bytes without objects, whatever others add meanwhile (the order
 * of the loads is above). Fixed point. Any thread, async-signal-safe. */
struct hp_stack_counts {
  uint64_t alloc_objects, alloc_bytes, freed_objects, freed_bytes;
};
void hp_stack_load(const struct hp_stack *stack, struct hp_stack_counts *out);

/* All entries together, in objects and bytes, in use = allocated and not freed. Summed while others count: for any later moment, in use
 * there <= in use here + what is allocated there - what is allocated here. Any thread, async-signal-safe. */
struct hp_stack_totals {
  double alloc_objects, alloc_bytes, inuse_objects, inuse_bytes;
};
void hp_stack_table_totals(struct hp_stack_totals *out);

/* Did a counter reach its end? (Said in the profile.) */
bool hp_stack_table_saturated(void);

/* A module goes, comes back. Close every open entry that has a return address in (start, end]: set_of says which modules the
 * entry belongs to, never 0. Open those closed ones whose modules are all in their places again: is_back says. The callers
 * see to it that no thread runs code of that module meanwhile, and that calls do not overlap. */
typedef uint32_t hp_stack_set_of(const uintptr_t *pcs, uint32_t depth);
typedef bool hp_stack_is_back(uint32_t set, const uintptr_t *pcs, uint32_t depth);
void hp_stack_table_close_range(uintptr_t start, uintptr_t end, hp_stack_set_of *set_of);
void hp_stack_table_reopen_range(uintptr_t start, uintptr_t end, hp_stack_is_back *is_back);

/* Tests: make every hash equal; refuse more than so many entries (0: no limit but memory). */
void hp_stack_table_test_force_hash(bool constant);
void hp_stack_table_test_limit(uint32_t entries);

/* Around fork. */
void hp_stack_table_lock(void);
void hp_stack_table_unlock(void);

#endif
