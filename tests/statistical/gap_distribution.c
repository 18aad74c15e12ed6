/* SPDX-License-Identifier: MIT
 * gap_distribution.c - B1: the bytes between samples are exponential. Kolmogorov and Smirnov's test of drawn gaps, and of the
 * distances between samples in a stream of blocks of one byte and of random sizes. Fixed seeds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hot.h"
#include "sampler.h"

struct hp_hot hp_hot = {.rate_epoch = 1};

enum { N = 20000 };
static double gaps[N];

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* sqrt(n) D of the sorted gaps against 1 - exp(-x/R); above 2.2 once in 8000 times. `grain`: gaps are whole numbers of this. */
static double distance(double rate, double grain) {
  double worst = 0;
  qsort(gaps, N, sizeof gaps[0], compare);
  for (int i = 0; i < N; i++) {
    int next = i;
    while (next + 1 < N && gaps[next + 1] == gaps[i]) next++;
    double below = -expm1(-gaps[i] / rate), above = -expm1(-(gaps[i] + grain) / rate);
    worst = fmax(worst, fmax((double)(next + 1) / N - above, below - (double)i / N));
    i = next;
  }
  return worst * sqrt(N);
}

static int report(const char *what, double rate, double d) {
  printf("%-28s R=%-8.0f sqrt(n) D = %.3f%s\n", what, rate, d, d < 2.2 ? "" : "  WRONG");
  return d < 2.2 ? 0 : 1;
}

int main(void) {
  static const uint64_t rates[] = {64, 1 << 10, 16 << 10, 512 << 10, 1 << 30};
  int wrong = 0;
  for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
    struct hp_rng rng = {r + 1};
    for (int i = 0; i < N; i++) gaps[i] = (double)hp_sampler_draw_gap(&rng, rates[r]);
    wrong += report("drawn gaps", (double)rates[r], distance((double)rates[r], 1));
  }
  hp_sampler_test_seed(5);
  hp_sampler_set_rate(256);
  for (int i = 0; i < N; i++) { /* blocks of one byte: the distance is the gap itself */
    double bytes = 0;
    while (hp_sampler_passes(1) || hp_sampler_decide_slow(1) == 0) bytes++;
    gaps[i] = bytes;
  }
  wrong += report("distances, blocks of a byte", 256, distance(256, 1));
  hp_sampler_set_rate(1 << 16);
  struct hp_rng sizes = {77};
  for (int i = 0; i < N; i++) { /* a sample ends somewhere in its block: where, is not kept; small blocks blur little */
    double bytes = 0;
    while (true) {
      size_t n = hp_rng_next(&sizes) % 64;
      if (!hp_sampler_passes(n) && hp_sampler_decide_slow(n) != 0) break;
      bytes += (double)(n + (n == 0));
    }
    gaps[i] = bytes;
  }
  wrong += report("distances, random sizes", 1 << 16, distance(1 << 16, 64));
  return wrong;
}
