/* SPDX-License-Identifier: MIT
 * test_unwind_slow.c - frames whose CFA hangs on other registers or general expressions, between frames that save and reuse
 * those registers; and walks while libgcc unwinds the stack itself (thread exit and cancellation run clean-up handlers). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "walk_compare.h"

#if defined(__x86_64__)
/* CFA = rbx + 16, on a realigned stack. */
void through_saved(void (*function)(void));
__asm__(
    ".text\n.type through_saved, @function\nthrough_saved:\n\t.cfi_startproc\n\tpushq %rbx\n\t.cfi_def_cfa_offset 16\n"
    "\t.cfi_offset %rbx, -16\n\tmovq %rsp, %rbx\n\t.cfi_def_cfa_register %rbx\n\tandq $-256, %rsp\n\tsubq $768, %rsp\n"
    "\tcall *%rdi\n\tmovq %rbx, %rsp\n\t.cfi_def_cfa_register %rsp\n\tpopq %rbx\n\t.cfi_def_cfa_offset 8\n\tret\n"
    "\t.cfi_endproc\n.size through_saved, .-through_saved\n");

/* CFA = *(r12 + 8) + 16 by an expression: r12 points at two words on the stack, the second of which is the old sp. */
void through_expression(void (*function)(void));
__asm__(
    ".text\n.type through_expression, @function\nthrough_expression:\n\t.cfi_startproc\n\tpushq %r12\n"
    "\t.cfi_def_cfa_offset 16\n\t.cfi_offset %r12, -16\n\tmovq %rsp, %rax\n\tsubq $48, %rsp\n\t.cfi_def_cfa_offset 64\n"
    "\tmovq %rax, 16(%rsp)\n\tleaq 8(%rsp), %r12\n\t.cfi_escape 0x0f, 5, 0x7c, 8, 0x06, 0x23, 16\n\tcall *%rdi\n"
    "\taddq $48, %rsp\n\t.cfi_def_cfa %rsp, 16\n\tpopq %r12\n\t.cfi_def_cfa_offset 8\n\tret\n\t.cfi_endproc\n"
    ".size through_expression, .-through_expression\n");

#define ZERO_SAVED_REGISTERS "xorl %%ebx, %%ebx\n\txorl %%r12d, %%r12d\n\txorl %%r13d, %%r13d"
#define SAVED_REGISTERS "rbx", "r12", "r13", "r14", "r15"
#else
/* The same with x19 for rbx and x20 for r12. Global: see test_unwind_signals.c. */
void through_saved(void (*function)(void));
void through_expression(void (*function)(void));
__asm__(
    ".text\n.globl through_saved, through_expression\n.hidden through_saved, through_expression\n"
    ".type through_saved, %function\nthrough_saved:\n\t.cfi_startproc\n\tstp x29, x30, [sp, #-32]!\n"
    "\t.cfi_def_cfa_offset 32\n\t.cfi_offset x29, -32\n\t.cfi_offset x30, -24\n\tstr x19, [sp, #16]\n"
    "\t.cfi_offset x19, -16\n\tmov x19, sp\n\t.cfi_def_cfa_register x19\n\tsub x9, sp, #768\n\tand sp, x9, #-256\n"
    "\tblr x0\n\tmov sp, x19\n\t.cfi_def_cfa_register sp\n\tldr x19, [sp, #16]\n\tldp x29, x30, [sp], #32\n"
    "\t.cfi_def_cfa_offset 0\n\tret\n\t.cfi_endproc\n.size through_saved, .-through_saved\n"
    ".type through_expression, %function\nthrough_expression:\n\t.cfi_startproc\n\tstp x29, x30, [sp, #-32]!\n"
    "\t.cfi_def_cfa_offset 32\n\t.cfi_offset x29, -32\n\t.cfi_offset x30, -24\n\tstr x20, [sp, #16]\n"
    "\t.cfi_offset x20, -16\n\tmov x9, sp\n\tsub sp, sp, #48\n\t.cfi_def_cfa_offset 80\n\tstr x9, [sp, #16]\n"
    "\tadd x20, sp, #8\n\t.cfi_escape 0x0f, 5, 0x84, 8, 0x06, 0x23, 32\n\tblr x0\n\tadd sp, sp, #48\n"
    "\t.cfi_def_cfa sp, 32\n\tldr x20, [sp, #16]\n\tldp x29, x30, [sp], #32\n\t.cfi_def_cfa_offset 0\n\tret\n"
    "\t.cfi_endproc\n.size through_expression, .-through_expression\n");
#define ZERO_SAVED_REGISTERS "mov x19, #0\n\tmov x20, #0\n\tmov x21, #0"
#define SAVED_REGISTERS "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28"
#endif

static void check(void) {
  walk_check();
  __asm__ volatile("");
}

/* Uses every callee-saved register itself, so that they must be found on its frame. */
static void __attribute__((noinline)) clobber_between(void (*outer)(void (*)(void)), void (*function)(void)) {
  __asm__ volatile(ZERO_SAVED_REGISTERS ::: SAVED_REGISTERS);
  outer(function);
  __asm__ volatile("" ::: SAVED_REGISTERS);
}

static void saved_then_check(void) { clobber_between(through_saved, check); }
static void expression_then_saved(void) { clobber_between(through_expression, saved_then_check); }
static void saved_then_expression(void) { clobber_between(through_saved, expression_then_saved); }

static void test_frames_on_other_registers(void **state) {
  (void)state;
  struct hp_unwind_stats before, after;
  hp_unwind_get_stats(&before);
  through_saved(check);
  through_expression(check);
  saved_then_expression();
  clobber_between(through_expression, saved_then_expression);
  hp_unwind_get_stats(&after);
  assert_int_equal(walk_differences, 0);
  assert_true(after.slow_walks - before.slow_walks >= 9);
}

static int recursion_left;
static void nest(void) {
  if (recursion_left-- > 0) {
    clobber_between(recursion_left % 2 ? through_saved : through_expression, nest);
  } else {
    check();
  }
}

static void *nest_in_thread(void *depth) {
  recursion_left = (int)(intptr_t)depth;
  nest();
  return NULL;
}

static void test_many_slow_frames_in_one_stack(void **state) {
  (void)state;
  pthread_t thread;
  pthread_create(&thread, NULL, nest_in_thread, (void *)(intptr_t)200);
  pthread_join(thread, NULL);
  assert_int_equal(walk_differences, 0);
}

static void check_in_cleanup(void *unused) {
  (void)unused;
  walk_check();
  __asm__ volatile("");
}

static bool is_exiting;

static void __attribute__((noinline)) exit_from(int depth) {
  pthread_cleanup_push(check_in_cleanup, NULL);
  if (depth > 0) {
    exit_from(depth - 1);
  } else if (is_exiting) {
    pthread_exit(NULL);
  }
  pthread_cleanup_pop(0);
}

static void *exit_in_thread(void *unused) {
  is_exiting = true;
  exit_from(10);
  return unused;
}

static void *cancel_me(void *unused) {
  pthread_cleanup_push(check_in_cleanup, NULL);
  while (is_exiting) pthread_testcancel();
  pthread_cleanup_pop(0);
  return unused;
}

static void test_walks_while_a_thread_is_unwound(void **state) {
  (void)state;
  pthread_t thread;
  uint64_t before = walk_comparisons;
  pthread_create(&thread, NULL, exit_in_thread, NULL);
  pthread_join(thread, NULL);
  pthread_create(&thread, NULL, cancel_me, NULL);
  pthread_cancel(thread);
  pthread_join(thread, NULL);
  assert_true(walk_comparisons > before + 10);
  assert_int_equal(walk_differences, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_frames_on_other_registers),
      cmocka_unit_test(test_many_slow_frames_in_one_stack),
      cmocka_unit_test(test_walks_while_a_thread_is_unwound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
