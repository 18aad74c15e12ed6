/* SPDX-License-Identifier: MIT
 * coverage.c - how often the truth lies within 1.96 standard errors of a total, the error being the one in the profile's comments
 * (the samples' own sum of s^2 (1-p)/p^2): 2000 runs each for small, mixed and large blocks, for objects and bytes, allocated and
 * in use. Fails outside 93 to 97 of 100. (Rows: tests/unit/test_cli_sampling_error.c.) Through the real sampler and tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hot.h"
#include "recorder.h"
#include "sampler.h"

struct hp_hot hp_hot = {.rate_epoch = 1};
static uint8_t no_filter[2 + HP_FILTER_SLACK] __attribute__((aligned(64)));

enum { RUNS = 2000, BLOCKS_MAX = 100000, TABLE = 1 << 16 };
static struct hp_rng chooser = {123};

static uint64_t small(void) { return 16 + hp_rng_next(&chooser) % 500; }
/* Evenly spread on a logarithmic scale. */
static uint64_t table_mixed[TABLE], table_wide[TABLE];
static uint64_t mixed(void) { return table_mixed[hp_rng_next(&chooser) % TABLE]; }
static uint64_t wide(void) { return table_wide[hp_rng_next(&chooser) % TABLE]; }
static uint64_t large(void) { return 20000 + hp_rng_next(&chooser) % 200000; }

struct state {
  double values[4], variances[4];
};

static void look(const struct hp_stack *s, struct state *out) {
  struct hp_live_moments m;
  hp_live_table_moments(&m);
  *out =
      (struct state){{(double)s->alloc_objects / 1024, (double)s->alloc_bytes / 16,
                      (double)(s->alloc_objects - s->freed_objects) / 1024, (double)(s->alloc_bytes - s->freed_bytes) / 16},
                     {m.alloc_objects_variance, m.alloc_bytes_variance, m.inuse_objects_variance, m.inuse_bytes_variance}};
}

static int measure(const char *name, uint64_t rate, uint64_t (*size)(void), long blocks, bool is_asserted) {
  static uint64_t live[BLOCKS_MAX];
  const uintptr_t pc = 0x1234;
  struct hp_stack *stack = hp_stack_table_intern(&pc, 1, HP_STACK_WHOLE, 0);
  int hits[4] = {0}, wrong = 0;
  hp_sampler_set_rate(rate);
  for (int run = 0; run < RUNS; run++) {
    struct state before, after;
    double truth[4] = {0};
    long sampled = 0;
    look(stack, &before);
    for (long i = 0; i < blocks; i++) {
      uint64_t n = size();
      truth[0]++, truth[1] += (double)n;
      bool stays = hp_rng_next(&chooser) % 2 == 0;
      if (stays) truth[2]++, truth[3] += (double)n;
      if (hp_sampler_passes(n)) continue;
      float weight = hp_sampler_decide_slow(n);
      if (weight == 0) continue;
      struct hp_sample sample = {.address = 4096 + (uintptr_t)i * 16, .size = n, .weight = weight, .pcs = &pc, .depth = 1};
      struct hp_live_record r;
      hp_recorder_add(&sample);
      if (stays) {
        live[sampled++] = sample.address;
      } else if (hp_recorder_take(sample.address, &r)) {
        hp_recorder_count_free(&r);
      }
    }
    look(stack, &after);
    for (int c = 0; c < 4; c++) {
      double error = sqrt(fmax(after.variances[c] - before.variances[c], 0));
      hits[c] += fabs(after.values[c] - before.values[c] - truth[c]) <= 1.96 * error + 1e-6;
    }
    while (sampled > 0) {
      struct hp_live_record r;
      if (hp_recorder_take(live[--sampled], &r)) hp_recorder_count_free(&r);
    }
  }
  printf("| %s |", name);
  for (int c = 0; c < 4; c++) {
    double percent = 100.0 * hits[c] / RUNS;
    bool is_right = !is_asserted || (percent >= 93 && percent <= 97);
    wrong += !is_right;
    printf(" %.1f %%%s |", percent, is_right ? "" : " WRONG");
  }
  printf("\n");
  return wrong;
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 4096);
  hp_hot.filter = (uintptr_t)hp_filter_place(no_filter, 1);
  hp_sampler_test_seed(2024);
  for (int i = 0; i < TABLE; i++) {
    table_mixed[i] = (uint64_t)(64 * exp((double)i / TABLE * log(1024)));
    table_wide[i] = (uint64_t)(16 * exp((double)i / TABLE * log(65536)));
  }
  printf("| blocks | alloc objects | alloc bytes | in use objects | in use bytes |\n|---|---|---|---|---|\n");
  int wrong = measure("small: 25 000 of 16 to 515 bytes, R = 16k", 16 << 10, small, 25000, true);
  wrong += measure("mixed: 30 000 of 64 bytes to 64 KiB, R = 16k", 16 << 10, mixed, 30000, true);
  wrong += measure("large: 800 of 20 to 220 kB, R = 64k", 64 << 10, large, 800, true);
  measure("(6 000 of 16 bytes to 1 MiB, R = 64k)", 64 << 10, wide, 6000,
          false); /* docs/accuracy.md: why objects fall short */
  return wrong;
}
