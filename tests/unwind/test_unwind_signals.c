/* SPDX-License-Identifier: MIT
 * test_unwind_signals.c - stacks that cross signal frames, on the same stack and on an alternate one, nested; and stacks
 * interrupted at every single instruction of library code (the processor's trap flag): prologues, epilogues, PLT stubs, the
 * lazy binder, hand-written string functions. Each is compared with libunwind. */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "walk_compare.h"

static void on_signal(int number) {
  static volatile int depth;
  walk_check();
  if (number == SIGUSR1 && depth < 3) {
    depth++;
    raise(SIGUSR1);
    depth--;
  }
}

static void install(int number, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(number, &action, NULL);
}

static void test_walk_crosses_nested_signal_frames(void **state) {
  (void)state;
  install(SIGUSR1, on_signal, SA_NODEFER);
  raise(SIGUSR1);
  assert_int_equal(walk_differences, 0);
}

static void test_walk_crosses_from_an_alternate_stack(void **state) {
  (void)state;
  static char alternate[1 << 17];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
  sigaltstack(&stack, NULL);
  install(SIGUSR2, on_signal, SA_ONSTACK);
  raise(SIGUSR2);
  stack = (stack_t){.ss_flags = SS_DISABLE};
  sigaltstack(&stack, NULL);
  assert_int_equal(walk_differences, 0);
}

/* A restorer whose table begins at its first instruction, as in the vDSO of aarch64 before Linux 5.8: nothing covers the place
 * one instruction before the return address, and a function begins right there. Global: binutils' linker for aarch64 makes a
 * table entry of a local one without its distance from the section. */
void restorer_from_its_start(void);
__asm__(
    ".text\n\t.p2align 4\n\tnop\n.globl restorer_from_its_start\n.hidden restorer_from_its_start\n"
    ".type restorer_from_its_start, %function\nrestorer_from_its_start:\n\t.cfi_startproc\n\t.cfi_signal_frame\n"
#if defined(__x86_64__)
    "\tmovq $15, %rax\n\tsyscall\n"
#else
    "\t.cfi_def_cfa x29, 0\n\t.cfi_offset x29, 0\n\t.cfi_offset x30, 8\n\tmov x8, #139\n\tsvc #0\n"
#endif
    "\t.cfi_endproc\n.size restorer_from_its_start, .-restorer_from_its_start\n");

static struct {
  size_t count;
  unsigned flags;
  uintptr_t pcs[WALK_MAX];
} in_handler;
static void walk_in_handler(int number) {
  (void)number;
  in_handler.count = walk_ours(in_handler.pcs, WALK_MAX, &in_handler.flags);
}

/* The frames above the restorer are those of this function and its callers (libunwind does not get there). */
static void test_walk_crosses_a_restorer_described_from_its_start(void **state) {
  (void)state;
  enum { RESTORER_IS_GIVEN = 0x04000000 }; /* SA_RESTORER, which libc hides */
  const struct {                           /* the kernel's own structure */
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
  } action = {.handler = walk_in_handler, .flags = RESTORER_IS_GIVEN, .restorer = restorer_from_its_start};
  uintptr_t here[WALK_MAX];
  unsigned flags;
  size_t n = walk_ours(here, WALK_MAX, &flags);
  assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR2, &action, NULL, sizeof(action.mask)), 0);
  raise(SIGUSR2);
  assert_int_equal(in_handler.pcs[1], (uintptr_t)restorer_from_its_start);
  assert_int_equal(in_handler.flags & ~(unsigned)HP_UNWIND_HINTS, 0);
  assert_true(in_handler.count > n + 2);
  for (size_t i = 1; i < n; i++) assert_int_equal(in_handler.pcs[in_handler.count - n + i], here[i]);
}

#if defined(__aarch64__)
/* Leaf functions that keep their return address in x30 alone, interrupted at a breakpoint; one has moved the stack pointer. */
void stop_in_leaf(void);
void stop_in_leaf_with_stack(void);
__asm__(
    ".text\n.globl stop_in_leaf, stop_in_leaf_with_stack\n.hidden stop_in_leaf, stop_in_leaf_with_stack\n"
    ".type stop_in_leaf, %function\nstop_in_leaf:\n\t.cfi_startproc\n\tbrk #0\n\tret\n\t.cfi_endproc\n"
    ".size stop_in_leaf, .-stop_in_leaf\n"
    ".type stop_in_leaf_with_stack, %function\nstop_in_leaf_with_stack:\n\t.cfi_startproc\n\tsub sp, sp, #64\n"
    "\t.cfi_def_cfa_offset 64\n\tbrk #0\n\tadd sp, sp, #64\n\t.cfi_def_cfa_offset 0\n\tret\n\t.cfi_endproc\n"
    ".size stop_in_leaf_with_stack, .-stop_in_leaf_with_stack\n");

static void walk_and_pass_breakpoint(int number, siginfo_t *info, void *context) {
  (void)number, (void)info;
  walk_check();
  ((ucontext_t *)context)->uc_mcontext.pc += 4;
}

static void test_walk_crosses_interrupted_leaf_functions(void **state) {
  (void)state;
  const struct sigaction action = {.sa_sigaction = walk_and_pass_breakpoint, .sa_flags = SA_SIGINFO};
  uint64_t before = walk_comparisons;
  sigaction(SIGTRAP, &action, NULL);
  stop_in_leaf();
  stop_in_leaf_with_stack();
  assert_int_equal(walk_comparisons, before + 2);
  assert_int_equal(walk_differences, 0);
}
#endif

#if defined(__x86_64__)
/* In assembly, so that each of their instructions is described too. */
void set_trap_flag(void);
void clear_trap_flag(void);
__asm__(
    ".text\n"
    ".type set_trap_flag, @function\nset_trap_flag:\n\t.cfi_startproc\n\tpushfq\n\t.cfi_adjust_cfa_offset 8\n"
    "\torq $0x100, (%rsp)\n\tpopfq\n\t.cfi_adjust_cfa_offset -8\n\tret\n\t.cfi_endproc\n"
    ".size set_trap_flag, .-set_trap_flag\n"
    ".type clear_trap_flag, @function\nclear_trap_flag:\n\t.cfi_startproc\n\tpushfq\n\t.cfi_adjust_cfa_offset 8\n"
    "\tandq $~0x100, (%rsp)\n\tpopfq\n\t.cfi_adjust_cfa_offset -8\n\tret\n\t.cfi_endproc\n"
    ".size clear_trap_flag, .-clear_trap_flag\n");

static int compare_ints(const void *left, const void *right) { return *(const int *)left - *(const int *)right; }

static void single_step(void (*run)(void)) {
  install(SIGTRAP, on_signal, 0);
  set_trap_flag();
  run();
  clear_trap_flag();
}

static void run_sort(void) {
  int numbers[] = {5, 3, 9, 1};
  qsort(numbers, 4, sizeof(int), compare_ints);
}

/* Functions that nothing else in this program has called: their first call goes through the lazy binder. */
static void run_lazy_calls(void) {
  char *end;
  volatile unsigned long sum = strtoul("12", &end, 10);
  sum += strlen(getenv("PATH") != NULL ? "a" : "bc");
  sum += (unsigned long)labs(-3);
  sum += (unsigned long)atoi("7");
  free(malloc(sum));
}

static void run_strings(void) {
  char text[200];
  memset(text, 'x', sizeof(text));
  text[sizeof(text) - 1] = 0;
  char copy[200];
  strcpy(copy, text);
  size_t sum = strlen(copy) + (size_t)strcmp(copy, text);
  sum += strchr(copy, 'y') != NULL;
  __asm__ volatile("" : : "r"(sum)); /* none of it may be left out */
}

static void run_print(void) {
  char line[64];
  snprintf(line, sizeof(line), "%d %s %.3f", 12, "word", 1.5);
}

/* In the kernel's own library. */
static void run_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
}

/* OpenSSL's assembly, which realigns its stack and describes that by expressions. */
static unsigned char *(*digest)(const unsigned char *data, size_t size, unsigned char *out);
static void run_digest(void) {
  unsigned char text[256] = "abc";
  unsigned char out[64];
  digest(text, sizeof(text), out);
}

static void run_jump(void) {
  jmp_buf here;
  if (setjmp(here) == 0) longjmp(here, 1);
}

static void test_walk_from_every_instruction(void (*run)(void)) {
  uint64_t before = walk_comparisons;
  single_step(run);
  print_message("%lu instructions\n", walk_comparisons - before);
  assert_true(walk_comparisons > before + 20);
  assert_int_equal(walk_differences, 0);
}
static void test_every_instruction_of_a_sort(void **state) {
  (void)state;
  test_walk_from_every_instruction(run_sort);
}
static void test_every_instruction_of_the_lazy_binder(void **state) {
  (void)state;
  test_walk_from_every_instruction(run_lazy_calls);
}
static void test_every_instruction_of_string_functions(void **state) {
  (void)state;
  test_walk_from_every_instruction(run_strings);
}
static void test_every_instruction_of_snprintf(void **state) {
  (void)state;
  test_walk_from_every_instruction(run_print);
}
static void test_every_instruction_of_the_clock(void **state) {
  (void)state;
  test_walk_from_every_instruction(run_clock);
}
static void test_every_instruction_of_openssl_digests(void **state) {
  (void)state;
  static const char *const names[] = {"SHA1", "SHA256", "SHA512"};
  void *library = dlopen("libcrypto.so.3", RTLD_NOW);
  for (size_t i = 0; library != NULL && i < HP_ARRAY_LENGTH(names); i++) {
    digest = (unsigned char *(*)(const unsigned char *, size_t, unsigned char *))(uintptr_t)dlsym(library, names[i]);
    if (digest == NULL) continue;
    run_digest(); /* sets itself up */
    test_walk_from_every_instruction(run_digest);
  }
}
static void test_every_instruction_of_longjmp(void **state) {
  (void)state;
  test_walk_from_every_instruction(run_jump);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_walk_crosses_nested_signal_frames),
    cmocka_unit_test(test_walk_crosses_from_an_alternate_stack),
    cmocka_unit_test(test_walk_crosses_a_restorer_described_from_its_start),
#if defined(__aarch64__)
    cmocka_unit_test(test_walk_crosses_interrupted_leaf_functions),
#endif
#if defined(__x86_64__)
    cmocka_unit_test(test_every_instruction_of_a_sort),
    cmocka_unit_test(test_every_instruction_of_the_lazy_binder),
    cmocka_unit_test(test_every_instruction_of_string_functions),
    cmocka_unit_test(test_every_instruction_of_snprintf),
    cmocka_unit_test(test_every_instruction_of_the_clock),
    cmocka_unit_test(test_every_instruction_of_openssl_digests),
    cmocka_unit_test(test_every_instruction_of_longjmp),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
