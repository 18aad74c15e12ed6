/* SPDX-License-Identifier: MIT
 * test_serve_answer.c - what heapprof serve answers (src/cli/serve_answer.h), with profiles made here instead of fetched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profile_reader.h"
#include "serve_answer.h"
#include "serve_http.h"

static int fetches;
static bool fetch_fails;
static int fetch_fails_from; /* this one and all after it; 0: none */
static bool types_change;    /* each profile has another unit */

/* The n-th profile: one stack with n times 1000 bytes in use; a second stack that only the first profile has. */
static struct hp_profile *make_profile(int n) {
  struct hp_profile *profile = hp_profile_new();
  hp_profile_append_type(profile, "alloc_objects", "count");
  hp_profile_append_type(profile, "alloc_space", "bytes");
  hp_profile_append_type(profile, "inuse_objects", "count");
  hp_profile_append_type(profile, "inuse_space", types_change && n > 1 ? "pages" : "bytes");
  profile->period_type.type = hp_profile_intern(profile, "space");
  profile->period_type.unit = hp_profile_intern(profile, "bytes");
  profile->period = 1;
  profile->time_nanos = 1000000000000000000 + n * INT64_C(2000000000);
  uint32_t locations[2];
  const char *const names[] = {"evil\n# TYPE fake gauge\nfake 1", "main"};
  for (int i = 0; i < 2; i++) {
    struct hp_function function = {.name = hp_profile_intern(profile, names[i])};
    struct hp_line line = {.function = hp_profile_append_function(profile, &function)};
    uint32_t first = hp_profile_append_line(profile, &line);
    struct hp_location location = {
        .address = (uint64_t)(0x1000 * (i + 1)), .mapping = HP_NONE, .first_line = first, .line_count = 1};
    locations[i] = hp_profile_append_location(profile, &location);
  }
  hp_profile_append_sample(profile, locations, 2, (int64_t[]){10 * n, 10000 * n, n, 1000 * n});
  if (n == 1) hp_profile_append_sample(profile, locations + 1, 1, (int64_t[]){5, 500, 5, 500});
  hp_profile_append_comment(profile, "heapprof.lost live_table_full=3 stack_table_full=4");
  hp_profile_append_comment(
      profile, "heapprof.reconcile rss_anon_bytes=77 allocator=glibc bad=1x rss_anon_bytes=78 UPPER=1 nan=nan inf=inf");
  hp_profile_append_comment(profile, "heapprof.x{y=\"z\"} a=1");
  hp_profile_append_comment(profile, "something else a=1");
  return profile;
}

static int fake_fetch(void *context, struct hp_profile **out, struct hp_error *error) {
  (void)context;
  if (fetch_fails) return hp_error_set(error, "process 7 is not profiled");
  fetches++;
  if (fetch_fails_from != 0 && fetches >= fetch_fails_from) return hp_error_set(error, "process 7 ended");
  *out = make_profile(fetches);
  return 0;
}

static struct hp_serve serve;

static int set_up(void **state) {
  (void)state;
  fetches = 0;
  fetch_fails = types_change = false;
  fetch_fails_from = 0;
  hp_serve_init(&serve, fake_fetch, NULL);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  hp_serve_free(&serve);
  return 0;
}

static struct hp_serve_answer ask(const char *method, const char *path, const char *seconds, const char *debug) {
  struct hp_serve_answer answer;
  hp_serve_answer(&serve, &(struct hp_serve_request){method, path, seconds, debug}, &answer);
  assert_non_null(answer.body);
  return answer;
}

static struct hp_profile *parse(struct hp_serve_answer *answer) {
  struct hp_profile *profile = NULL;
  struct hp_error error;
  assert_int_equal(hp_profile_read_memory("answer", answer->body, answer->body_bytes, &profile, &error), 0);
  free(answer->body);
  return profile;
}

static int64_t total(const struct hp_profile *profile, const char *type) {
  int64_t sum = 0;
  for (size_t i = 0; i < profile->sample_count; i++)
    sum += hp_profile_value(profile, i, hp_profile_type_find(profile, type));
  return sum;
}

static void test_heap_and_allocs_differ_in_what_is_shown_first(void **state) {
  (void)state;
  const char *const paths[][3] = {{"/debug/pprof/heap", "heap", "inuse_space"},
                                  {"/debug/pprof/allocs", "allocs", "alloc_space"}};
  for (int i = 0; i < 2; i++) {
    struct hp_serve_answer answer = ask("GET", paths[i][0], NULL, NULL);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.type, "application/octet-stream");
    assert_string_equal(answer.file_name, paths[i][1]);
    struct hp_profile *profile = parse(&answer);
    assert_string_equal(hp_profile_text(profile, profile->default_type), paths[i][2]);
    hp_profile_free(profile);
  }
}

static void test_seconds_gives_the_second_dump_minus_the_first(void **state) {
  (void)state;
  struct hp_serve_answer answer = ask("GET", "/debug/pprof/allocs", "1", NULL);
  assert_string_equal(answer.file_name, "allocs-delta");
  struct hp_profile *profile = parse(&answer);
  assert_int_equal(total(profile, "alloc_space"), 20000 - 10500);
  assert_int_equal(total(profile, "inuse_space"), 2000 - 1500);
  assert_int_equal(profile->duration_nanos, 2000000000);
  assert_int_equal(profile->time_nanos, 1000000004000000000);
  profile->period = 1024;
  /* What was freed in between had doubt of its own; what was allocated only came to it. */
  uint32_t allocated = hp_profile_type_find(profile, "alloc_space"), in_use = hp_profile_type_find(profile, "inuse_space");
  assert_int_equal(hp_profile_error_partner(profile, allocated), hp_profile_type_partner(profile, allocated));
  assert_int_not_equal(hp_profile_type_partner(profile, in_use), HP_NONE);
  assert_int_equal(hp_profile_error_partner(profile, in_use), HP_NONE);
  hp_profile_free(profile);
  assert_int_equal(serve.deltas, 0);
}

static void test_bad_seconds_cost_no_dump(void **state) {
  (void)state;
  const char *const bad[] = {"0", "-3", "x", "1.5", "301", "99999999999999999999", " 1"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct hp_serve_answer answer = ask("GET", "/debug/pprof/heap", bad[i], NULL);
    assert_int_equal(answer.status, 400);
    free(answer.body);
  }
  struct hp_serve_answer answer = ask("GET", "/debug/pprof/heap", "1", "1");
  assert_int_equal(answer.status, 400);
  free(answer.body);
  assert_int_equal(fetches, 0);
}

static void test_a_failed_dump_is_one_sentence(void **state) {
  (void)state;
  fetch_fails = true;
  const char *const paths[] = {"/debug/pprof/heap", "/debug/pprof/allocs", "/metrics"};
  for (int i = 0; i < 3; i++) {
    struct hp_serve_answer answer = ask("GET", paths[i], i == 1 ? "1" : NULL, NULL);
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer.body, "process 7 is not profiled\n");
    free(answer.body);
  }
  assert_int_equal(serve.deltas, 0);
}

/* What follows takes every way out of ?seconds= with a profile in hand: the sanitizer's run of this test finds a leak. */
static void test_a_process_that_ends_between_two_dumps_is_one_sentence(void **state) {
  (void)state;
  fetch_fails_from = 2;
  struct hp_serve_answer answer = ask("GET", "/debug/pprof/heap", "1", NULL);
  assert_int_equal(answer.status, 503);
  assert_string_equal(answer.body, "process 7 ended\n");
  free(answer.body);
  assert_int_equal(fetches, 2);
  assert_int_equal(serve.deltas, 0);
}

static void test_dumps_that_cannot_be_compared_are_one_sentence(void **state) {
  (void)state;
  types_change = true;
  struct hp_serve_answer answer = ask("GET", "/debug/pprof/heap", "1", NULL);
  assert_int_equal(answer.status, 500);
  assert_non_null(strstr(answer.body, "no sample type inuse_space in pages"));
  free(answer.body);
  assert_int_equal(serve.deltas, 0);
}

static void test_too_many_deltas_cost_no_dump(void **state) {
  (void)state;
  serve.deltas = HP_SERVE_DELTAS_MAX;
  struct hp_serve_answer answer = ask("GET", "/debug/pprof/heap", "1", NULL);
  assert_int_equal(answer.status, 503);
  free(answer.body);
  assert_int_equal(fetches, 0);
  assert_int_equal(serve.deltas, HP_SERVE_DELTAS_MAX);
}

static bool deltas_become(unsigned wanted) {
  for (int i = 0; i < 30000; i++) { /* five minutes */
    pthread_mutex_lock(&serve.lock);
    bool are = serve.deltas == wanted;
    pthread_mutex_unlock(&serve.lock);
    if (are) return true;
    usleep(10000);
  }
  return false;
}

/* Clients that hang up during the wait: both dumps are taken all the same, and everything is freed. One of them is still there
 * when the server stops. */
static void test_clients_that_hang_up_leave_nothing(void **state) {
  (void)state;
  static const char request[] = "GET /debug/pprof/heap?seconds=4 HTTP/1.0\r\n\r\n",
                    late[] = "GET /debug/pprof/heap?seconds=300 HTTP/1.0\r\n\r\n";
  enum { CLIENTS = 3 };
  struct hp_error error;
  struct hp_serve_http *http = hp_serve_http_start(&serve, "127.0.0.1:0", &error);
  assert_non_null(http);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  address.sin_port = htons((uint16_t)atoi(strrchr(hp_serve_http_address(http), ':') + 1));
  for (unsigned i = 0; i <= CLIENTS; i++) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    const char *text = i == CLIENTS ? late : request;
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    assert_true(deltas_become(i + 1 <= CLIENTS ? i + 1 : 1));
    close(fd);
    if (i == CLIENTS - 1) assert_true(deltas_become(0));
  }
  hp_serve_stop(&serve);
  hp_serve_http_stop(http);
  assert_int_equal(serve.deltas, 0);
  assert_true(fetches >= 2 * CLIENTS && fetches <= 2 * CLIENTS + 1); /* the late one may have been told before its first */
}

static void test_a_stopping_server_starts_no_delta(void **state) {
  (void)state;
  hp_serve_stop(&serve);
  struct hp_serve_answer answer = ask("GET", "/debug/pprof/heap", "300", NULL);
  assert_int_equal(answer.status, 503);
  free(answer.body);
}

static void *stop_soon(void *context) {
  (void)context;
  for (;;) { /* until the request waits for its second dump */
    pthread_mutex_lock(&serve.lock);
    bool waits = serve.deltas == 1;
    pthread_mutex_unlock(&serve.lock);
    if (waits) break;
  }
  hp_serve_stop(&serve);
  return NULL;
}

static void test_a_stop_ends_the_wait_of_a_delta(void **state) {
  (void)state;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
  struct hp_serve_answer answer = ask("GET", "/debug/pprof/heap", "300", NULL); /* the suite's own limit is shorter */
  assert_int_equal(answer.status, 503);
  free(answer.body);
  pthread_join(thread, NULL);
  assert_int_equal(fetches, 1);
}

static void test_metrics_are_kept_for_a_moment(void **state) {
  (void)state;
  const int64_t hour = INT64_C(3600000000000); /* this process may be stopped for longer than the moment */
  struct hp_serve_answer first = ask("GET", "/metrics", NULL, NULL);
  serve.metrics_nanos += hour;
  struct hp_serve_answer second = ask("GET", "/metrics", NULL, NULL);
  assert_int_equal(fetches, 1);
  assert_string_equal(first.body, second.body);
  serve.metrics_nanos -= 2 * hour;
  struct hp_serve_answer third = ask("GET", "/metrics", NULL, NULL);
  assert_int_equal(fetches, 2);
  free(first.body);
  free(second.body);
  free(third.body);
}

static void test_metrics_take_only_well_formed_figures(void **state) {
  (void)state;
  struct hp_serve_answer answer = ask("GET", "/metrics", NULL, NULL);
  const char *text = answer.body;
  assert_non_null(strstr(text, "\nheapprof_inuse_bytes 1500\n"));
  assert_non_null(strstr(text, "\nheapprof_lost_total{cause=\"live_table_full\"} 3\n"));
  assert_non_null(strstr(text, "\nheapprof_lost_total{cause=\"stack_table_full\"} 4\n"));
  assert_non_null(strstr(text, "\nheapprof_reconcile_rss_anon_bytes 77\n"));
  assert_null(strstr(text, "rss_anon_bytes 78")); /* a name must not come twice */
  const char *const absent[] = {"glibc", "bad", "UPPER", "nan", "inf ", "fake", "x{y", "else"};
  for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) assert_null(strstr(text, absent[i]));
  free(answer.body);
}

static void test_text_keeps_names_on_their_line(void **state) {
  (void)state;
  struct hp_serve_answer answer = ask("GET", "/debug/pprof/heap", NULL, "1");
  assert_string_equal(answer.type, "text/plain; charset=utf-8");
  static const char start[] =
      "heap profile: 6: 1500 [15: 10500] @ heapprofile\n1: 1000 [10: 10000] @ 0x1001 0x2001\n#\t0x1000\t";
  assert_memory_equal(answer.body, start, sizeof start - 1);
  assert_null(strstr(answer.body, "\n# TYPE fake"));
  assert_non_null(strstr(answer.body, "evil\\x0a"));
  free(answer.body);
}

static void test_other_requests(void **state) {
  (void)state;
  const struct {
    const char *method, *path;
    unsigned status;
  } cases[] = {{"GET", "/debug/pprof/", 200},        {"GET", "/", 302},
               {"GET", "/debug/pprof/heap/", 404},   {"GET", "", 404},
               {"POST", "/debug/pprof/heap", 405},   {"BREW", "/", 405},
               {"POST", "/debug/pprof/symbol", 200}, {"HEAD", "/debug/pprof/", 200}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct hp_serve_answer answer = ask(cases[i].method, cases[i].path, NULL, NULL);
    assert_int_equal(answer.status, cases[i].status);
    free(answer.body);
  }
  assert_int_equal(fetches, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_heap_and_allocs_differ_in_what_is_shown_first, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_seconds_gives_the_second_dump_minus_the_first, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_bad_seconds_cost_no_dump, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_failed_dump_is_one_sentence, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_process_that_ends_between_two_dumps_is_one_sentence, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_dumps_that_cannot_be_compared_are_one_sentence, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_too_many_deltas_cost_no_dump, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_clients_that_hang_up_leave_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_stopping_server_starts_no_delta, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_stop_ends_the_wait_of_a_delta, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_metrics_are_kept_for_a_moment, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_metrics_take_only_well_formed_figures, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_text_keeps_names_on_their_line, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_other_requests, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
