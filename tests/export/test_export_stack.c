/* SPDX-License-Identifier: MIT
 * test_export_stack.c - how much stack a dump takes: an encode with names, its own check, zlib and the file, on a painted
 * stack. The library's dump stack is made for HP_EXPORT_STACK_BYTES and the signal frame above it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "export_test.h"
#include "fake_modules.h"
#include "pprof.h"
#include "rng.h"
#include "sink.h"

enum { HP_EXPORT_STACK_BYTES = 6 * 1024, STACK_BYTES = 256 * 1024, PAINT = 0xA5, ROWS = 3000, DEPTH = 60 };

static ucontext_t main_context, dump_context;
static struct hp_row rows[ROWS];
static uintptr_t frames[ROWS][DEPTH];
static struct hp_label labels[2] = {{.key = "bytes", .num = 64, .unit = "bytes"}, {.key = "thread", .str = "w\xFFrker"}};
static struct hp_arena arena;
static struct hp_file_sink sink;
static char path[64];
static int status;

static void fill_rows(void) {
  struct hp_rng rng = {.state = 5};
  const struct hp_module *modules[] = {fake_modules_add_loaded((uintptr_t)&fill_rows),
                                       fake_modules_add_loaded((uintptr_t)&printf)};
  for (size_t i = 0; i < ROWS; i++) {
    for (size_t k = 0; k < DEPTH; k++) {
      const struct hp_module *module = modules[hp_rng_next(&rng) % 2];
      frames[i][k] = module->text_start + 2 + hp_rng_next(&rng) % (module->text_end - module->text_start - 2);
    }
    rows[i] = (struct hp_row){.pcs = frames[i],
                              .depth = DEPTH,
                              .modules = i % 5 == 0 ? fake_modules_set(modules[0]) : fake_modules_loaded(),
                              .labels = labels,
                              .label_count = 2};
    for (size_t v = 0; v < HP_VALUES; v++) rows[i].values[v] = (int64_t)(hp_rng_next(&rng) >> 40) + (v < 2 ? 1 << 24 : 0);
  }
}

static void dump(void) {
  const char *const comments[] = {"a comment"};
  struct hp_snapshot snapshot = {.rows = rows,
                                 .row_count = ROWS,
                                 .kind = HP_KIND_FULL,
                                 .period_bytes = 524288,
                                 .comments = comments,
                                 .comment_count = 1};
  struct hp_pprof_options options = {.with_symbols = true, .max_depth = 40, .executable = "/opt/app"};
  const char *fault;
  status = hp_file_sink_open(&sink, path);
  if (status == 0) status = hp_pprof_encode(&snapshot, &options, &arena, &sink.base, &fault);
  if (status == 0) status = hp_file_sink_commit(&sink);
}

static void test_a_dump_fits_its_stack(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip(); /* frames are not what they are */
#endif
  fill_rows();
  snprintf(path, sizeof path, "/tmp/hp_stack_%d.pb.gz", (int)getpid());
  unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(stack, MAP_FAILED);
  memset(stack, PAINT, STACK_BYTES);
  assert_int_equal(getcontext(&dump_context), 0);
  dump_context.uc_stack.ss_sp = stack;
  dump_context.uc_stack.ss_size = STACK_BYTES;
  dump_context.uc_link = &main_context;
  makecontext(&dump_context, dump, 0);
  assert_int_equal(swapcontext(&main_context, &dump_context), 0);
  assert_int_equal(status, 0);
  unlink(path);
  size_t untouched = 0;
  while (untouched < STACK_BYTES && stack[untouched] == PAINT) untouched++;
  print_message("a dump took %zu bytes of stack\n", (size_t)STACK_BYTES - untouched);
  assert_true(STACK_BYTES - untouched <= HP_EXPORT_STACK_BYTES);
  munmap(stack, STACK_BYTES);
  hp_arena_reset(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_dump_fits_its_stack)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
