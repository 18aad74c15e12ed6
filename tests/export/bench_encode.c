/* SPDX-License-Identifier: MIT
 * bench_encode.c - what an encode costs: stacks of a given depth over a given number of call sites in this program and libc.
 *   bench_encode [stacks [depth [sites [rounds [file]]]]]
 * 0 sites: two call sites a level, the bits of the stack's number choose, leaf first.
 * Prints one line: CPU milliseconds of the first encode (names looked up) and the median of the later ones, size in bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_modules.h"
#include "pprof.h"
#include "rng.h"
#include "sink.h"

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A call tree: each stack leaves an earlier one at a random depth, as the stacks of a program do. */
static void make_stacks(struct hp_row *rows, size_t stacks, size_t depth, const uintptr_t *sites, size_t site_count,
                        bool is_by_bits, struct hp_rng *rng) {
  for (size_t i = 0; i < stacks; i++) {
    uintptr_t *pcs = calloc(depth, sizeof *pcs);
    size_t own = i == 0 ? depth : 1 + hp_rng_next(rng) % (depth - 1);
    if (i != 0) memcpy(pcs + own, rows[hp_rng_next(rng) % i].pcs + own, (depth - own) * sizeof *pcs);
    for (size_t k = 0; k < own; k++) pcs[k] = sites[hp_rng_next(rng) % site_count];
    for (size_t k = 0; k < depth && is_by_bits; k++) pcs[k] = sites[(2 * k + (k < 32 ? i >> k & 1 : 0)) % site_count];
    rows[i].pcs = pcs;
    rows[i].depth = (uint32_t)depth;
    rows[i].modules = fake_modules_loaded();
    int64_t objects = 1 + (int64_t)(hp_rng_next(rng) % 20);
    rows[i].values[HP_ALLOC_OBJECTS] = objects * 1741;
    rows[i].values[HP_ALLOC_BYTES] = objects * 1741 * (int64_t)(16 + hp_rng_next(rng) % 4096);
    rows[i].values[HP_INUSE_OBJECTS] = rows[i].values[HP_ALLOC_OBJECTS] / 2;
    rows[i].values[HP_INUSE_BYTES] = rows[i].values[HP_ALLOC_BYTES] / 2;
  }
}

static int by_value(const void *a, const void *b) {
  double difference = *(const double *)a - *(const double *)b;
  return difference < 0 ? -1 : difference > 0;
}

static size_t argument(int argc, char **argv, int i, size_t otherwise) {
  return i < argc ? strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
  size_t stacks = argument(argc, argv, 1, 10000);
  size_t depth = argument(argc, argv, 2, 40);
  size_t site_count = argument(argc, argv, 3, 5000);
  bool is_by_bits = site_count == 0;
  if (is_by_bits) site_count = 2 * depth;
  size_t rounds = argument(argc, argv, 4, 9);
  const char *path = argc > 5 ? argv[5] : "bench_encode.pb.gz";
  struct hp_rng rng = {.state = 1};
  const struct hp_module *program = fake_modules_add_loaded((uintptr_t)main);
  const struct hp_module *libc = fake_modules_add_loaded((uintptr_t)&printf);
  uintptr_t *sites = calloc(site_count, sizeof *sites);
  for (size_t i = 0; i < site_count; i++) {
    const struct hp_module *module = i % 16 == 0 ? program : libc;
    sites[i] = module->text_start + 2 + hp_rng_next(&rng) % (module->text_end - module->text_start - 2);
  }
  struct hp_row *rows = calloc(stacks, sizeof *rows);
  make_stacks(rows, stacks, depth, sites, site_count, is_by_bits, &rng);
  struct hp_snapshot snapshot = {
      .rows = rows, .row_count = stacks, .kind = HP_KIND_FULL, .time_nanos = (int64_t)time(NULL) * 1000000000};
  snapshot.period_bytes = 524288;
  struct hp_pprof_options options = {.with_symbols = true, .max_depth = 128, .executable = argv[0]};
  static struct hp_file_sink sink;
  double *times = calloc(rounds + 1, sizeof *times);
  size_t memory = 0;
  for (size_t i = 0; i <= rounds; i++) {
    struct hp_arena arena = {0};
    const char *fault = NULL;
    double start = cpu_ms();
    int status = hp_file_sink_open(&sink, path);
    if (status == 0) status = hp_pprof_encode(&snapshot, &options, &arena, &sink.base, &fault);
    if (status == 0) status = hp_file_sink_commit(&sink);
    memory = arena.mapped_bytes;
    hp_arena_reset(&arena);
    times[i] = cpu_ms() - start;
    if (status != 0) {
      fprintf(stderr, "bench_encode: %s %s\n", strerror(-status), fault != NULL ? fault : "");
      return 1;
    }
  }
  qsort(times + 1, rounds, sizeof *times, by_value);
  printf(
      "%zu stacks, depth %zu, %zu sites: first %.1f ms, then median %.1f ms (%.1f to %.1f), %llu bytes, %zu KiB of memory\n",
      stacks, depth, site_count, times[0], times[1 + rounds / 2], times[1], times[rounds],
      (unsigned long long)sink.bytes_written, memory / 1024);
  return 0;
}
