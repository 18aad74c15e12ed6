/* SPDX-License-Identifier: MIT
 * test_live_index.c - the index against a plain array: full chunks, what passed them, hashes that are all alike. */
#include <stdlib.h>

#include "hash.h"
#include "heap.h"
#include "hot.h"
#include "live_index.h"
#include "rng.h"
#include "unit_test.h"

struct hp_hot hp_hot;

enum { NUMBERS = 3000 };

static struct hp_live_index set;
static uint64_t hash_of_number[NUMBERS];
static bool is_in[NUMBERS];
static unsigned asked;

static bool is_number(const void *context, uint32_t number) {
  asked++;
  return number == *(const uint32_t *)context;
}

static struct hp_live_place find(uint32_t number) {
  asked = 0;
  return hp_live_index_find(&set, hash_of_number[number], is_number, &number);
}

static void must_be_as_said(void) {
  for (uint32_t n = 0; n < NUMBERS; n++) {
    struct hp_live_place at = find(n);
    assert_int_equal(at.chunk != NULL, is_in[n]);
    if (is_in[n]) assert_int_equal(hp_live_index_number(&at), n);
  }
}

static uint64_t passed_in_all(void) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < set.chunk_count; i++) sum += set.chunks[i].passed;
  return sum;
}

/* Numbers come and go at random, up to a filling of so many entries. */
static void come_and_go(uint32_t filling) {
  struct hp_rng rng = {filling + 1};
  uint32_t count = 0;
  for (int step = 0; step < 200000; step++) {
    uint32_t n = (uint32_t)(hp_rng_next(&rng) % NUMBERS);
    struct hp_live_place at = find(n);
    assert_int_equal(at.chunk != NULL, is_in[n]);
    if (is_in[n]) {
      hp_live_index_remove(&set, &at);
      is_in[n] = false;
      count--;
    } else if (count < filling) {
      hp_live_index_add(&set, hash_of_number[n], n);
      is_in[n] = true;
      count++;
    }
    if (step % 20000 == 0) must_be_as_said();
  }
  must_be_as_said();
  for (uint32_t n = 0; n < NUMBERS; n++) {
    struct hp_live_place at = find(n);
    if (is_in[n]) hp_live_index_remove(&set, &at);
    is_in[n] = false;
  }
  must_be_as_said();
  assert_int_equal(passed_in_all(), 0); /* who goes takes its mark along */
}

static void make(uint32_t entries, uint64_t (*hash)(uint32_t number)) {
  hp_live_index_free(&set);
  assert_true(hp_live_index_make(&set, entries));
  for (uint32_t n = 0; n < NUMBERS; n++) hash_of_number[n] = hash(n);
}

static uint64_t mixed(uint32_t number) { return hp_hash_mix(number + 1); }
static uint64_t alike(uint32_t number) { return (uint64_t)number & 1; }
static uint64_t at_the_end(uint32_t number) {
  return UINT64_MAX >> 6 ^ (uint64_t)number << 32;
} /* the last chunk, all tags */

static void numbers_come_and_go_up_to_the_last_room(void **state) {
  (void)state;
  make(1000, mixed);
  assert_true(hp_live_index_comfort(&set) >= 1000);
  assert_true(hp_live_index_comfort(&set) < 1030);
  come_and_go(hp_live_index_comfort(&set));
  come_and_go(hp_live_index_room(&set));
}

static void hashes_that_are_all_alike_are_only_slow(void **state) {
  (void)state;
  make(300, alike);
  come_and_go(hp_live_index_room(&set));
}

static void what_passes_the_last_chunk_goes_to_the_first(void **state) {
  (void)state;
  make(100, at_the_end);
  for (uint32_t n = 0; n < HP_LIVE_CHUNK_ENTRIES + 1; n++) hp_live_index_add(&set, hash_of_number[n], n);
  struct hp_live_place at = find(HP_LIVE_CHUNK_ENTRIES);
  assert_ptr_equal(at.chunk, set.chunks);
  assert_ptr_equal(at.home, set.chunks + set.chunk_count - 1);
  for (uint32_t n = 0; n < HP_LIVE_CHUNK_ENTRIES + 1; n++) {
    at = find(n);
    hp_live_index_remove(&set, &at);
  }
  come_and_go(hp_live_index_room(&set));
}

static void an_absent_hash_asks_for_no_record(void **state) {
  (void)state;
  make(1000, mixed);
  for (uint32_t n = 0; n < 1000; n++) hp_live_index_add(&set, hash_of_number[n], n);
  unsigned sum = 0;
  for (uint32_t n = 1000; n < NUMBERS; n++) {
    assert_null(find(n).chunk);
    sum += asked;
  }
  assert_in_range(sum, 20, 200); /* 2000 searches among 12 entries, one in 256 of which has the tag: about 94 */
  for (uint32_t n = 0; n < 1000; n++) {
    struct hp_live_place at = find(n);
    hp_live_index_remove(&set, &at);
  }
}

static void a_mark_that_is_stuck_stays(void **state) {
  (void)state;
  make(100, alike);
  for (uint32_t n = 0; n < HP_LIVE_CHUNK_ENTRIES; n++) hp_live_index_add(&set, 0, n);
  set.chunks[0].passed = HP_LIVE_PASSED_STUCK;
  for (uint32_t n = 0; n < NUMBERS; n++) hash_of_number[n] = 0;
  hp_live_index_add(&set, 0, 100);
  struct hp_live_place at = find(100);
  assert_ptr_equal(at.chunk, set.chunks + 1);
  hp_live_index_remove(&set, &at);
  assert_int_equal(set.chunks[0].passed, HP_LIVE_PASSED_STUCK);
  assert_null(find(100).chunk);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_come_and_go_up_to_the_last_room), cmocka_unit_test(hashes_that_are_all_alike_are_only_slow),
      cmocka_unit_test(what_passes_the_last_chunk_goes_to_the_first), cmocka_unit_test(an_absent_hash_asks_for_no_record),
      cmocka_unit_test(a_mark_that_is_stuck_stays)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
