/* SPDX-License-Identifier: MIT
 * bench_util.c - clocks, options and results of the benchmark programs. Reads /proc with plain system calls: stdio would
 * allocate inside what is measured.
 */
#include "bench_util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bench_cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }
uint64_t bench_wall_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
uint64_t bench_thread_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

void bench_clock_start(struct bench_clock *clock) {
  clock->chunks = 0;
  clock->wall_start_ns = bench_wall_ns();
  clock->cpu_start_ns = bench_cpu_ns();
  clock->chunk_start_ns = clock->cpu_start_ns;
}

void bench_clock_chunk(struct bench_clock *clock) {
  uint64_t now_ns = bench_cpu_ns();
  if (clock->chunks < BENCH_CHUNKS_MAX) clock->chunk_ns[clock->chunks++] = now_ns - clock->chunk_start_ns;
  clock->chunk_start_ns = now_ns;
}

void bench_clock_stop(struct bench_clock *clock) {
  clock->cpu_ns = bench_cpu_ns() - clock->cpu_start_ns;
  clock->wall_ns = bench_wall_ns() - clock->wall_start_ns;
}

static int compare_values(const void *left, const void *right) {
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

void bench_sort(uint64_t *values, size_t count) { qsort(values, count, sizeof *values, compare_values); }

double bench_percentile(const uint64_t *sorted, size_t count, double percent) {
  if (count == 0) return 0;
  size_t at = (size_t)(percent / 100 * (double)count);
  return (double)sorted[at < count ? at : count - 1];
}

double bench_clock_median_chunk_ns(struct bench_clock *clock) {
  if (clock->chunks == 0) return (double)clock->cpu_ns;
  bench_sort(clock->chunk_ns, clock->chunks);
  return bench_percentile(clock->chunk_ns, clock->chunks, 50);
}

uint64_t bench_option(int argc, char **argv, const char *name, uint64_t fallback) {
  size_t length = strlen(name);
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "--", 2) != 0 || strncmp(argv[i] + 2, name, length) != 0 || argv[i][2 + length] != '=') continue;
    char *end;
    errno = 0;
    uint64_t value = strtoull(argv[i] + 3 + length, &end, 10);
    if (errno == 0 && *end == '\0' && end != argv[i] + 3 + length) return value;
    fprintf(stderr, "%s: not a number\n", argv[i]);
    exit(2);
  }
  return fallback;
}

void bench_fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

/* kB figure of the line that begins with `name`, in bytes. */
static uint64_t rollup_bytes(const char *text, const char *name) {
  const char *line = strstr(text, name);
  return line == NULL ? 0 : strtoull(line + strlen(name), NULL, 10) * 1024;
}

struct bench_memory bench_memory_now(void) {
  char text[4096];
  struct bench_memory result = {0, 0};
  int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return result;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  text[length < 0 ? 0 : length] = '\0';
  result.private_bytes = rollup_bytes(text, "Private_Clean:") + rollup_bytes(text, "Private_Dirty:");
  result.rss_bytes = rollup_bytes(text, "\nRss:");
  return result;
}
