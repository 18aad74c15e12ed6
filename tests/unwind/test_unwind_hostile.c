/* SPDX-License-Identifier: MIT
 * test_unwind_hostile.c - stacks that are not what a compiler and libc make: coroutines, stacks that end at an unmapped
 * page, smashed frames, random words, generated code, recursion without end, threads with hardly any stack. The walk must
 * end by itself and never touch what is not mapped (a fault ends the test); where the stack is sound it must be whole. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "rng.h"
#include "stack_bounds.h"
#include "walk_compare.h"

enum { PAGE = 4096, RANDOM_STACKS = 200000 };

/* n writable pages with an unmapped one before and behind. */
static char *map_between_guards(size_t pages) {
  char *area = mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(area != MAP_FAILED);
  assert_int_equal(mprotect(area + PAGE, pages * PAGE, PROT_READ | PROT_WRITE), 0);
  return area + PAGE;
}
static void unmap_between_guards(char *area, size_t pages) { munmap(area - PAGE, (pages + 2) * PAGE); }

static void test_probe_tells_mapped_from_unmapped(void **state) {
  (void)state;
  char *area = map_between_guards(1);
  assert_true(hp_stack_probe((uintptr_t)area));
  assert_true(hp_stack_probe((uintptr_t)area + PAGE - 8));
  assert_false(hp_stack_probe((uintptr_t)area + PAGE));
  assert_false(hp_stack_probe((uintptr_t)area - 8));
  assert_false(hp_stack_probe(0));
  assert_false(hp_stack_probe(8));
  assert_false(hp_stack_probe(UINTPTR_MAX - 7));
  assert_false(hp_stack_probe((uintptr_t)1 << 47));
  assert_false(hp_stack_probe((uintptr_t)0xABCDEF << 40));
  unmap_between_guards(area, 1);
}

static void *check_own_stack(void *unused) {
  (void)unused;
  struct hp_stack_range range;
  pthread_attr_t attributes;
  void *low;
  size_t size;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  hp_stack_enter(here, &range);
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  assert_int_equal(range.lo, here);
  assert_true(range.hi > here && range.hi <= (uintptr_t)low + size);
  assert_true((uintptr_t)low + size - range.hi < 3 * PAGE + 65536);
  assert_int_not_equal(hp_stack_own_tls.kind, HP_STACK_UNKNOWN);
  return NULL;
}

static void test_own_stack_is_known_in_every_thread(void **state) {
  (void)state;
  pthread_t thread;
  check_own_stack(NULL);
  assert_int_equal(hp_stack_own_tls.kind, HP_STACK_MAIN);
  pthread_create(&thread, NULL, check_own_stack, NULL);
  pthread_join(thread, NULL);
  pthread_attr_t attributes;
  char *area = map_between_guards(16);
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, area, 16 * PAGE);
  assert_int_equal(pthread_create(&thread, &attributes, check_own_stack, NULL), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  unmap_between_guards(area, 16);
}

/* ---- coroutines ---- */

static ucontext_t main_context, coroutine;
static struct walk_pair coroutine_pair;

static void __attribute__((noinline)) coroutine_body(int depth) {
  if (depth > 0) {
    coroutine_body(depth - 1);
  } else {
    walk_both(&coroutine_pair);
  }
  __asm__ volatile("");
}

static void coroutine_entry(void) { coroutine_body(5); }

static void run_coroutine(char *stack, size_t size) {
  memset(stack, 0xA7, size);
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = size;
  coroutine.uc_link = &main_context;
  makecontext(&coroutine, coroutine_entry, 0);
  swapcontext(&main_context, &coroutine);
}

static void test_coroutine_is_walked_to_its_root(void **state) {
  (void)state;
  char *area = map_between_guards(8);
  run_coroutine(area, 8 * PAGE);
  assert_true(walk_pair_check(&coroutine_pair));
  assert_true(coroutine_pair.ours_count >= 8);
  unmap_between_guards(area, 8);
  char *block = malloc(8 * PAGE);
  run_coroutine(block, 8 * PAGE);
  assert_true(walk_pair_check(&coroutine_pair));
  free(block);
}

/* Each walk believes only what it has probed itself: the page behind the stack is gone the second time. */
static void test_coroutine_stack_that_shrank_is_not_overrun(void **state) {
  (void)state;
  char *area = map_between_guards(4);
  uintptr_t pcs[64];
  unsigned flags;
  memset(area, 0, 4 * PAGE);
  struct hp_frame_start start = {
      .pc = (uintptr_t)coroutine_entry + 4, .sp = (uintptr_t)area + PAGE - 64, .fp = (uintptr_t)area + PAGE};
  hp_unwind(&start, pcs, 64, &flags);
  mprotect(area + PAGE, PAGE, PROT_NONE);
  for (uintptr_t below = 0; below <= 64; below += 8) {
    start.sp = (uintptr_t)area + PAGE - below;
    for (uintptr_t fp = start.sp - 16; fp < start.sp + 64; fp += 8) {
      start.fp = fp;
      hp_unwind(&start, pcs, 64, &flags);
    }
  }
  unmap_between_guards(area, 4);
}

/* Calls `function` on another stack; its own frame is found through rbp or x29, as rust's stacker and others do it. */
void call_on_stack(void (*function)(void), char *top);
__asm__(
#if defined(__x86_64__)
    ".text\n.type call_on_stack, @function\ncall_on_stack:\n\t.cfi_startproc\n\tpushq %rbp\n\t.cfi_adjust_cfa_offset 8\n"
    "\t.cfi_rel_offset %rbp, 0\n\tmovq %rsp, %rbp\n\t.cfi_def_cfa_register %rbp\n\tmovq %rsi, %rsp\n\tcall *%rdi\n"
    "\tleave\n\t.cfi_def_cfa %rsp, 8\n\tret\n\t.cfi_endproc\n.size call_on_stack, .-call_on_stack\n"
#else
    ".text\n.type call_on_stack, %function\ncall_on_stack:\n\t.cfi_startproc\n\tstp x29, x30, [sp, #-16]!\n"
    "\t.cfi_def_cfa_offset 16\n\t.cfi_offset x29, -16\n\t.cfi_offset x30, -8\n\tmov x29, sp\n\t.cfi_def_cfa_register x29\n"
    "\tmov sp, x1\n\tblr x0\n\tmov sp, x29\n\t.cfi_def_cfa_register sp\n\tldp x29, x30, [sp], #16\n"
    "\t.cfi_def_cfa_offset 0\n\tret\n\t.cfi_endproc\n.size call_on_stack, .-call_on_stack\n"
#endif
);

static struct walk_pair switched_pair;
static void on_switched_stack(void) {
  walk_both(&switched_pair);
  __asm__ volatile("");
}

static void *switch_stacks(void *where) {
  call_on_stack(on_switched_stack, where);
  return NULL;
}

static void test_walk_follows_from_a_switched_stack_home(void **state) {
  (void)state;
  enum { PAGES = 64 };
  char *area = map_between_guards(PAGES);
  switch_stacks(area + (size_t)PAGES * PAGE); /* the first word of its frames is the last of the mapping */
  assert_true(walk_pair_check(&switched_pair));
  /* A thread whose stack lies below the other one. */
  char *low = map_between_guards(PAGES);
  char *high = area;
  if (low > high) {
    high = low;
    low = area;
  }
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, low, PAGES * PAGE);
  assert_int_equal(pthread_create(&thread, &attributes, switch_stacks, high + (size_t)PAGES * PAGE), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  assert_true(walk_pair_check(&switched_pair));
  unmap_between_guards(low, PAGES);
  unmap_between_guards(high, PAGES);
}

/* ---- rubbish ---- */

static uintptr_t random_word(struct hp_rng *rng, const uintptr_t *pcs, size_t n, uintptr_t base) {
  switch (hp_rng_next(rng) % 8) {
    case 0: return hp_rng_next(rng);
    case 1: return hp_rng_next(rng) & 0x7FFFFFFFFFFF;
    case 2: return base + hp_rng_next(rng) % (2 * PAGE); /* reaches into the unmapped page */
    case 3: return (base + hp_rng_next(rng) % (2 * PAGE)) & ~(uintptr_t)7;
    case 4: return hp_rng_next(rng) % 4096;
    case 5: return (uintptr_t)&hp_unwind + hp_rng_next(rng) % 4096; /* any place of real code */
    case 6: return (uintptr_t)&qsort + hp_rng_next(rng) % 65536;
    default: return pcs[hp_rng_next(rng) % n];
  }
}

/* One page full of true return addresses and rubbish, a hole behind it. */
static void test_random_stacks_end_by_themselves(void **state) {
  (void)state;
  struct hp_rng rng = {42};
  uintptr_t pcs[256], real[64];
  unsigned flags;
  char *area = map_between_guards(1);
  size_t n = walk_ours(real, 64, &flags);
  uint64_t frames = 0;
  for (int i = 0; i < RANDOM_STACKS; i++) {
    uintptr_t *words = (uintptr_t *)(void *)area;
    if (i % 16 == 0) {
      for (size_t w = 0; w < PAGE / 8; w++) words[w] = random_word(&rng, real, n, (uintptr_t)area);
    }
    struct hp_frame_start start = {.pc = random_word(&rng, real, n, (uintptr_t)area),
                                   .sp = (uintptr_t)area + (hp_rng_next(&rng) % (PAGE / 8 + 1)) * 8,
                                   .fp = random_word(&rng, real, n, (uintptr_t)area)};
    if (i % 3 == 0) start.pc = real[hp_rng_next(&rng) % n];
    frames += hp_unwind(&start, pcs, 256, &flags);
  }
  print_message("%lu frames in %d walks\n", frames, RANDOM_STACKS);
  assert_true(frames > RANDOM_STACKS);
  unmap_between_guards(area, 1);
}

static uintptr_t smashed_pcs[64];
static size_t smashed_count;
static unsigned smashed_flags;

/* Overwrites its saved frame pointer or its return address while the walk goes on, and puts it back. */
static void __attribute__((noinline)) smash(int word, uintptr_t value) {
  volatile uintptr_t *frame = __builtin_frame_address(0);
  uintptr_t old = frame[word];
  frame[word] = value;
  smashed_count = walk_ours(smashed_pcs, 64, &smashed_flags);
  frame[word] = old;
}

static void test_smashed_frames_end_the_walk(void **state) {
  (void)state;
  const uintptr_t values[] = {
      1, 8, 0x1234567, UINTPTR_MAX, UINTPTR_MAX - 8, (uintptr_t)1 << 47, 0x4141414141414141, (uintptr_t)&walk_ours};
  for (size_t i = 0; i < HP_ARRAY_LENGTH(values); i++) {
    smash(1, values[i]);
    assert_true(smashed_count >= 1);
    smash(0, values[i]);
    assert_true(smashed_count >= 1);
  }
  smash(1, 0x4141414141414141);
  assert_int_equal(smashed_flags & HP_UNWIND_INCOMPLETE, HP_UNWIND_INCOMPLETE);
}

/* ---- generated code ---- */

typedef void (*generated)(void (*callee)(void));
static uintptr_t generated_pcs[64];
static size_t generated_count;
static unsigned generated_flags;

static void walk_from_generated(void) {
  generated_count = walk_ours(generated_pcs, 64, &generated_flags);
  __asm__ volatile("");
}

static void __attribute__((noinline)) call_generated(generated code) {
  code(walk_from_generated);
  __asm__ volatile("");
}

static void test_generated_code_with_frame_pointers_is_passed(void **state) {
  (void)state;
  /* push rbp; mov rbp, rsp; sub rsp, 32; call rdi; leave; ret -- and the same with a frame pointer that is none
   * stp x29, x30, [sp, #-32]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #32; ret */
#if defined(__x86_64__)
  enum { BEHIND_CALL = 10 };
  static const uint8_t with[] = {0x55, 0x48, 0x89, 0xE5, 0x48, 0x83, 0xEC, 0x20, 0xFF, 0xD7, 0xC9, 0xC3};
  static const uint8_t without[] = {0x55, 0x48, 0xC7, 0xC5, 0x78, 0x56, 0x34, 0x12, 0xFF, 0xD7, 0x5D, 0xC3};
#else
  enum { BEHIND_CALL = 12 };
  static const uint32_t with[] = {0xA9BE7BFD, 0x910003FD, 0xD63F0000, 0xA8C27BFD, 0xD65F03C0};
  static const uint32_t without[] = {0xA9BE7BFD, 0xD28ACF1D, 0xD63F0000, 0xA8C27BFD, 0xD65F03C0};
#endif
  uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(code != MAP_FAILED);
  memcpy(code, with, sizeof(with));
  memcpy(code + 256, without, sizeof(without));
  __builtin___clear_cache((char *)code, (char *)code + 512);
  uintptr_t here[64];
  unsigned flags;
  size_t n = walk_ours(here, 64, &flags);
  call_generated((generated)(void *)code);
  assert_int_equal(generated_flags & ~(unsigned)HP_UNWIND_HINTS, 0);
  assert_int_equal(generated_count, n + 3);
  assert_int_equal(generated_pcs[1], (uintptr_t)code + BEHIND_CALL);
  for (size_t i = 1; i < n; i++) assert_int_equal(generated_pcs[i + 3], here[i]);
  call_generated((generated)(void *)(code + 256));
  assert_int_equal(generated_flags, HP_UNWIND_INCOMPLETE);
  assert_int_equal(generated_count, 2);
  munmap(code, PAGE);
}

/* ---- depth ---- */

static size_t deep_count;
static unsigned deep_flags;
static long __attribute__((noinline)) recurse(int depth) {
  static uintptr_t pcs[HP_STACK_WORDS_MAX];
  if (depth == 0) {
    deep_count = walk_ours(pcs, HP_STACK_WORDS_MAX, &deep_flags);
    return 1;
  }
  return recurse(depth - 1) + depth;
}

static void *recurse_in_thread(void *depth) {
  recurse((int)(intptr_t)depth);
  return NULL;
}

static void test_endless_recursion_is_cut(void **state) {
  (void)state;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 20);
  pthread_create(&thread, &attributes, recurse_in_thread, (void *)(intptr_t)100000);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  assert_int_equal(deep_count, HP_STACK_WORDS_MAX);
  assert_int_equal(deep_flags, HP_UNWIND_TRUNCATED);
}

static void test_depth_limit_is_exact(void **state) {
  (void)state;
  uintptr_t pcs[64];
  unsigned flags;
  size_t n = walk_ours(pcs, 64, &flags);
  assert_int_equal(flags & ~(unsigned)HP_UNWIND_HINTS, 0);
  assert_int_equal(walk_ours(pcs, n, &flags), n);
  assert_int_equal(flags & ~(unsigned)HP_UNWIND_HINTS, 0);
  assert_int_equal(walk_ours(pcs, n - 1, &flags), n - 1);
  assert_int_equal(flags, HP_UNWIND_TRUNCATED);
}

/* ---- how much stack the walk itself takes ---- */

enum { PAINT = 0x5A };
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { USE_COLD_MAX = 14000, USE_WARM_MAX = 14000 }; /* not the frames of the library as it ships */
#else
enum { USE_COLD_MAX = 4096, USE_WARM_MAX = 1024 };
#endif
static size_t painted_use;

static void __attribute__((noinline)) measure_walk(char *low, bool flush) {
  uintptr_t pcs[32];
  unsigned flags;
  char *here = __builtin_frame_address(0);
  char *from = here - 14000 > low ? here - 14000 : low;
  size_t length = (size_t)(here - 600 - from);
  if (flush) hp_unwind_flush();
  for (int round = 0; round < (flush ? 1 : 2); round++) {
    for (volatile char *at = from; at < from + length; at++) *at = PAINT;
    walk_ours(pcs, 32, &flags);
  }
  size_t clean = 0;
  while (clean < length && from[clean] == PAINT) clean++;
  painted_use = (size_t)(here - from) - clean;
}

static void *measure_on_small_stack(void *unused) {
  pthread_attr_t attributes;
  void *low;
  size_t size;
  (void)unused;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  measure_walk((char *)low + PAGE, true);
  print_message("%zu bytes of stack with an empty cache\n", painted_use);
  assert_true(painted_use < USE_COLD_MAX);
  measure_walk((char *)low + PAGE, false);
  print_message("%zu bytes of stack with a full one\n", painted_use);
  assert_true(painted_use < USE_WARM_MAX);
  return NULL;
}

static void test_walk_fits_the_smallest_thread_stack(void **state) {
  (void)state;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 8 * PAGE);
  assert_int_equal(pthread_create(&thread, &attributes, measure_on_small_stack, NULL), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_probe_tells_mapped_from_unmapped),
      cmocka_unit_test(test_own_stack_is_known_in_every_thread),
      cmocka_unit_test(test_coroutine_is_walked_to_its_root),
      cmocka_unit_test(test_coroutine_stack_that_shrank_is_not_overrun),
      cmocka_unit_test(test_walk_follows_from_a_switched_stack_home),
      cmocka_unit_test(test_random_stacks_end_by_themselves),
      cmocka_unit_test(test_smashed_frames_end_the_walk),
      cmocka_unit_test(test_generated_code_with_frame_pointers_is_passed),
      cmocka_unit_test(test_endless_recursion_is_cut),
      cmocka_unit_test(test_depth_limit_is_exact),
      cmocka_unit_test(test_walk_fits_the_smallest_thread_stack),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
