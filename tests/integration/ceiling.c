/* SPDX-License-Identifier: MIT
 * ceiling.c - a program with as many live blocks as one likes, for ceiling.py: after WARM blocks that come and go it allocates
 * COUNT from one function, asks for a dump, frees them all, and asks again when a filter on free that was replaced may be given
 * back (record/live_table.c: after ten seconds). After each step it prints what is resident, and what the library says of itself.
 *   ceiling COUNT */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <heapprof.h>

enum { BLOCK_BYTES = 24, WARM = 1000, FILTER_SECONDS = 11 };

static void do_nothing(int number) { (void)number; }

/* In KiB, -1: it is not there; by system calls alone. */
static long read_number(const char *path, const char *key) {
  char text[4096];
  int file = open(path, O_RDONLY);
  if (file < 0) return -1;
  ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  text[n > 0 ? n : 0] = 0;
  const char *at = strstr(text, key);
  return at == NULL ? -1 : strtol(at + strlen(key), NULL, 10);
}

/* Counted page by page; the line of the status may be short or over by some 128 KiB for each processor that was used (Linux 6.2 to 6.15). */
static long resident(void) {
  long counted = read_number("/proc/self/smaps_rollup", "\nRss:");
  return counted >= 0 ? counted : read_number("/proc/self/status", "\nVmRSS:");
}

static void report(const char *step) {
  struct heapprof_stats stats;
  char line[256];
  memset(&stats, 0, sizeof stats);
  heapprof_stats(&stats);
  int n = snprintf(line, sizeof line, "%s %ld %ld %llu %llu %llu\n", step, resident(),
                   read_number("/proc/self/status", "\nVmHWM:"), (unsigned long long)stats.metadata_bytes,
                   (unsigned long long)stats.live_samples, (unsigned long long)stats.lost_live_table_full);
  if (write(1, line, (size_t)n) != n) _exit(3);
}

__attribute__((noinline)) static void **allocate_all(size_t count) {
  void **blocks =
      mmap(NULL, count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (blocks == MAP_FAILED) return NULL;
  for (size_t i = 0; i < count; i++) {
    blocks[i] = malloc(BLOCK_BYTES);
    if (blocks[i] == NULL) return NULL;
    memset(blocks[i], 1, BLOCK_BYTES);
  }
  return blocks;
}

static void free_all(void **blocks, size_t count) {
  for (size_t i = 0; i < count; i++) free(blocks[i]);
  munmap(blocks, count * sizeof *blocks);
}

int main(int argc, char **argv) {
  size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
  struct sigaction now;
  if (count == 0) return 1;
  sigaction(SIGUSR2, NULL, &now);
  if (now.sa_handler == SIG_DFL) signal(SIGUSR2, do_nothing); /* the library was not loaded */
  free_all(allocate_all(WARM), WARM);
  raise(SIGUSR2);
  report("warm");
  void **blocks = allocate_all(count);
  if (blocks == NULL) return 2;
  report("full");
  raise(SIGUSR2);
  report("full-dumped");
  free_all(blocks, count);
  for (int i = 0; i < 3; i++) { /* replaced filters go; then a smaller one is made; then the large one goes */
    sleep(FILTER_SECONDS);
    raise(SIGUSR2);
  }
  report("empty-dumped");
  return 0;
}
