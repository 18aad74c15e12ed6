/* SPDX-License-Identifier: MIT
 * test_view_parts.c - the parts the page is made of: tree of stacks, base64, reconciliation lines, escaping of the title.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile_model.h"
#include "view_html.h"
#include "view_page.h"
#include "view_reconcile.h"
#include "view_tree.h"

static char *capture(void (*write)(FILE *, const void *), const void *context) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  write(out, context);
  fclose(out);
  return text;
}

static void write_base64(FILE *out, const void *context) { hp_view_base64_write(out, context, strlen(context)); }

static void test_base64_pads_each_length(void **state) {
  (void)state;
  const char *const cases[][2] = {{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
                                  {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *text = capture(write_base64, cases[i][0]);
    assert_string_equal(text, cases[i][1]);
    free(text);
  }
}

static void write_page(FILE *out, const void *context) {
  struct hp_error error;
  assert_int_equal(hp_view_html_write(out, context, "{}", 2, &error), 0);
}

static void test_the_title_cannot_leave_its_element(void **state) {
  (void)state;
  char *page = capture(write_page, "</title><script>x</script>\"'&\x01\xff");
  assert_null(strstr(page, "</title><script>"));
  assert_non_null(strstr(page, "<title>&#60;/title&#62;&#60;script&#62;x&#60;/script&#62;&#34;&#39;&#38; &#xfffd;</title>"));
  free(page);
}

/* Addresses other than the meta element's "http-equiv" and the namespace of SVG: something to load. */
static int foreign_links(const char *page) {
  int count = 0;
  for (size_t i = 0; page[i] != '\0'; i++)
    if (strncmp(page + i, "http", 4) == 0 && strncmp(page + i, "http-equiv", 10) != 0 &&
        strncmp(page + i, "http://www.w3.org/2000/svg\"", 27) != 0)
      count++;
  return count;
}

static void test_every_placeholder_is_filled_and_the_policy_names_our_script(void **state) {
  (void)state;
  char *page = capture(write_page, "t");
  const char *const names[] = {"@CSP@", "@CSS@", "@DATA@", "@JS@", "@TITLE@", "@VERSION@"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    assert_non_null(strstr(hp_view_page_html, names[i]));
    assert_null(strstr(page, names[i]));
  }
  assert_non_null(strstr(page, "default-src 'none'; script-src 'sha256-"));
  assert_null(strstr(page, "unsafe-inline"));
  assert_null(strstr(hp_view_page_js, "</script"));
  assert_null(strstr(hp_view_page_css, "</style"));
  assert_int_equal(foreign_links(page), 0);
  free(page);
}

static void test_equal_stacks_share_nodes_and_numbers_are_preorder(void **state) {
  (void)state;
  struct hp_view_tree tree;
  hp_view_tree_init(&tree);
  uint32_t a = hp_view_tree_child(&tree, 0, 7), b = hp_view_tree_child(&tree, a, 8), c = hp_view_tree_child(&tree, 0, 9);
  uint32_t d = hp_view_tree_child(&tree, b, 7);
  assert_int_equal(hp_view_tree_child(&tree, a, 8), b);
  assert_int_equal(hp_view_tree_child(&tree, 0, 7), a);
  assert_int_equal(tree.count, 5);
  uint32_t *number_of, *node_of;
  hp_view_tree_number(&tree, &number_of, &node_of);
  assert_int_equal(number_of[0], 0);
  for (uint32_t i = 1; i < 5; i++) {
    assert_int_equal(node_of[number_of[i]], i);
    assert_true(number_of[tree.nodes[i].parent] < number_of[i]);
  }
  assert_int_equal(number_of[b], number_of[a] + 1);
  assert_int_equal(number_of[d], number_of[a] + 2);
  assert_true(number_of[c] < number_of[a] || number_of[c] > number_of[d]);
  free(number_of);
  free(node_of);
  hp_view_tree_free(&tree);
}

static void test_a_million_deep_stack_is_no_recursion(void **state) {
  (void)state;
  struct hp_view_tree tree;
  hp_view_tree_init(&tree);
  uint32_t node = 0;
  for (uint32_t i = 0; i < 1000000; i++) node = hp_view_tree_child(&tree, node, i % 3);
  uint32_t *number_of, *node_of;
  hp_view_tree_number(&tree, &number_of, &node_of);
  assert_int_equal(number_of[node], 1000000);
  free(number_of);
  free(node_of);
  hp_view_tree_free(&tree);
}

static void test_reconciliation_is_read_tolerantly(void **state) {
  (void)state;
  struct hp_profile *profile = hp_profile_new();
  struct hp_reconcile figures;
  hp_view_reconcile_read(profile, &figures);
  assert_false(figures.has_any);
  hp_profile_append_comment(profile, "heapprof.version 0.1.0");
  hp_profile_append_comment(
      profile, "heapprof.reconcile inuse_bytes=100 inuse_se=2.5 unknown=9 rss_anon_bytes=-4 =5 x= rss_file_bytes=junk");
  hp_profile_append_comment(profile, "heapprof.reconcile allocator=glibc allocator_inuse_bytes=1e300 profiler_bytes=7");
  hp_view_reconcile_read(profile, &figures);
  assert_true(figures.has_any);
  assert_int_equal(figures.bytes[HP_RECONCILE_INUSE], 100);
  assert_int_equal(figures.bytes[HP_RECONCILE_INUSE_ERROR], 2);
  assert_int_equal(figures.bytes[HP_RECONCILE_RSS_ANON], -1);
  assert_int_equal(figures.bytes[HP_RECONCILE_RSS_FILE], -1);
  assert_int_equal(figures.bytes[HP_RECONCILE_ALLOCATOR_INUSE], -1);
  assert_int_equal(figures.bytes[HP_RECONCILE_PROFILER], 7);
  assert_string_equal(figures.allocator, "glibc");
  hp_profile_free(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_base64_pads_each_length),
      cmocka_unit_test(test_the_title_cannot_leave_its_element),
      cmocka_unit_test(test_every_placeholder_is_filled_and_the_policy_names_our_script),
      cmocka_unit_test(test_equal_stacks_share_nodes_and_numbers_are_preorder),
      cmocka_unit_test(test_a_million_deep_stack_is_no_recursion),
      cmocka_unit_test(test_reconciliation_is_read_tolerantly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
