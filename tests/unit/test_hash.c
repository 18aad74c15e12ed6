/* SPDX-License-Identifier: MIT
 * test_hash.c - hashes of words: what differs, differs; the spread of real addresses. */
#include <string.h>

#include "hash.h"
#include "hot.h"
#include "unit_test.h"

struct hp_hot hp_hot;

static void order_length_seed_and_each_word_matter(void **state) {
  (void)state;
  uintptr_t words[64], other[64];
  for (int i = 0; i < 64; i++) words[i] = 0x555555554000u + (uintptr_t)i * 40;
  uint64_t hash = hp_hash_words(words, 64, 0);
  assert_int_equal(hash, hp_hash_words(words, 64, 0));
  assert_int_not_equal(hash, hp_hash_words(words, 63, 0));
  assert_int_not_equal(hash, hp_hash_words(words, 64, 1));
  for (int i = 0; i < 64; i++) {
    memcpy(other, words, sizeof other);
    other[i] ^= 1;
    assert_int_not_equal(hash, hp_hash_words(other, 64, 0));
    if (i > 0) {
      memcpy(other, words, sizeof other);
      other[i - 1] = words[i];
      other[i] = words[i - 1];
      assert_int_not_equal(hash, hp_hash_words(other, 64, 0));
    }
  }
  uintptr_t ends[] = {0, UINTPTR_MAX};
  assert_int_not_equal(hp_hash_words(&ends[0], 1, 0), hp_hash_words(&ends[1], 1, 0));
  assert_int_not_equal(hp_hash_words(ends, 0, 0), hp_hash_words(&ends[0], 1, 0));
}

static void the_sum_of_a_tail_can_be_kept(void **state) {
  (void)state;
  uintptr_t words[40];
  for (int i = 0; i < 40; i++) words[i] = 0x7ffff7a00000u + (uintptr_t)i * i * 24;
  for (size_t behind = 0; behind <= 40; behind++) {
    size_t n = 40 - behind;
    uint64_t sum = hp_hash_sum(words, n, behind) + hp_hash_sum(words + n, behind, 0);
    assert_int_equal(hp_hash_of_sum(sum, 40, 7), hp_hash_words(words, 40, 7));
  }
}

/* Blocks of one size come at even steps; the top bits, which choose shard and counter, must spread them all the same. */
static void evenly_spaced_addresses_spread_over_the_top_bits(void **state) {
  (void)state;
  static const uintptr_t steps[] = {16, 32, 48, 64, 112, 4096, 65536, 1 << 20, 1 << 21};
  for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
    uint32_t buckets[256] = {0}, worst = 0;
    for (uintptr_t i = 0; i < 256 * 64; i++) buckets[hp_address_hash((void *)(0x7f0000000010u + i * steps[s])) >> 56]++;
    for (int b = 0; b < 256; b++) worst = buckets[b] > worst ? buckets[b] : worst;
    assert_true(worst < 64 * 3);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(order_length_seed_and_each_word_matter),
                                     cmocka_unit_test(the_sum_of_a_tail_can_be_kept),
                                     cmocka_unit_test(evenly_spaced_addresses_spread_over_the_top_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
