/* SPDX-License-Identifier: MIT
 * known_totals.c - 1 GiB in 1 KiB blocks by site_A, 512 MiB in 64 B blocks by site_B of which a tenth is kept, one 100 MiB
 * block by site_C. known_totals SEED: its samples are drawn from that seed, where the library is the testing one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define SITE __attribute__((noinline, used))
#define USE(p) __asm__ volatile("" : : "r"(p) : "memory")

SITE void *site_A(void) { void *p = malloc(1024); USE(p); return p; }
SITE void *site_B(void) { void *p = malloc(64); USE(p); return p; }
SITE void *site_C(void) { void *p = malloc(100 << 20); USE(p); return p; }

int main(int argc, char **argv) {
  if (argc > 1) {
    void (*set_seed)(unsigned long) = (void (*)(unsigned long))dlsym(RTLD_DEFAULT, "heapprof_test_seed");
    if (set_seed == NULL) return 2;
    set_seed(strtoul(argv[1], NULL, 10));
  }
  for (long i = 0; i < 1L << 20; i++) free(site_A());
  for (long i = 0; i < 8L << 20; i++) {
    void *p = site_B();
    if (i % 10 != 0) free(p);
  }
  site_C();
  puts("ok");
  return 0;
}
