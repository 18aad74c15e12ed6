/* SPDX-License-Identifier: MIT
 * test_path_template.c - HEAPPROF_OUT. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "path_template.h"
#include "unit_test.h"

static const struct hp_path_facts facts = {
    .directory = "/start", .executable = "a.out", .pid = 42, .dump_number = 7, .unix_seconds = 1700000000};

static void expands(const char *path_template, const char *kind, const char *want) {
  char out[256];
  assert_int_equal(hp_path_expand(path_template, &facts, kind, out, sizeof out), 0);
  assert_string_equal(out, want);
}

static void escapes_relative_names_and_kinds(void **state) {
  (void)state;
  expands("/x/%p.%n.%e.%t.%%", NULL, "/x/42.7.a.out.1700000000.%");
  expands("rel.pb.gz", NULL, "/start/rel.pb.gz");
  expands("/dir/", NULL, "/dir/heapprof.a.out.42.7.pb.gz");
  expands("/x/f.pb.gz", "delta", "/x/f.delta.pb.gz");
  expands("/x/f", "delta", "/x/f.delta");
  expands("/x/%q%", NULL, "/x/%q%");
  struct utsname name;
  char want[512];
  uname(&name);
  snprintf(want, sizeof want, "/x/%s", name.nodename);
  expands("/x/%h", NULL, want);
}

static void names_cannot_leave_the_directory(void **state) {
  (void)state;
  char out[64];
  struct hp_path_facts evil = facts;
  evil.executable = "../../etc/pass\nwd";
  assert_int_equal(hp_path_expand("/x/%e", &evil, NULL, out, sizeof out), 0);
  assert_string_equal(out, "/x/.._.._etc_pass_wd");
}

static void what_cannot_be_is_an_error(void **state) {
  (void)state;
  char out[16];
  struct hp_path_facts nowhere = facts;
  nowhere.directory = NULL;
  assert_int_equal(hp_path_expand("rel", &nowhere, NULL, out, sizeof out), -ENOENT);
  assert_int_equal(hp_path_expand("/abc/%p", &nowhere, NULL, out, sizeof out), 0);
  assert_int_equal(hp_path_expand("/0123456789/abcdef", &facts, NULL, out, sizeof out), -ENAMETOOLONG);
  assert_int_equal(hp_path_expand("/0123456.pb.gz", &facts, "delta", out, sizeof out), -ENAMETOOLONG);
  char escape = 0;
  assert_false(hp_path_has_unknown_escape("%p%n%e%h%t%%", &escape));
  assert_true(hp_path_has_unknown_escape("%%q%q", &escape));
  assert_int_equal(escape, 'q');
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(escapes_relative_names_and_kinds),
                                     cmocka_unit_test(names_cannot_leave_the_directory),
                                     cmocka_unit_test(what_cannot_be_is_an_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
