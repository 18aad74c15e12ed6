/* SPDX-License-Identifier: MIT
 * test_config.c - the environment: every variable, good and bad. */
#include <signal.h>
#include <string.h>

#include "config.h"
#include "recorder.h"
#include "sampler.h"
#include "snapshot.h"
#include "unit_test.h"

static int complaint_count;
static const char *last_variable;
static void complain(const char *variable, const char *value, const char *text) {
  assert_non_null(value);
  assert_non_null(text);
  last_variable = variable;
  complaint_count++;
}

static struct hp_config read_one(const char *setting) {
  char copy[300];
  char *environment[] = {"PATH=/bin", copy, "HEAPPROF_SAMPLE_RATEX=1", NULL};
  struct hp_config c;
  strcpy(copy, setting);
  complaint_count = 0;
  hp_config_read(&c, environment, complain);
  return c;
}

static void sizes_have_suffixes_and_limits(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t value; /* -1: refused */
  } cases[] = {{"0", 0},
               {"1", 1},
               {"512k", 524288},
               {"512K", 524288},
               {"3m", 3 << 20},
               {"2g", 2ll << 30},
               {"1024g", 1ll << 40},
               {"1025g", -1},
               {"", -1},
               {"k", -1},
               {"1kb", -1},
               {"-1", -1},
               {"+1", -1},
               {" 1", -1},
               {"1.5", -1},
               {"0x10", -1},
               {"1e3", -1},
               {"18446744073709551616", -1},
               {"18446744073709551615g", -1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t value = 77;
    assert_int_equal(hp_config_parse_size(cases[i].text, HP_SAMPLE_RATE_MAX, &value), cases[i].value >= 0);
    assert_int_equal(value, cases[i].value >= 0 ? cases[i].value : 77);
  }
}

static void seconds_are_decimals(void **state) {
  (void)state;
  uint64_t nanos;
  assert_true(hp_config_parse_seconds("60", &nanos) && nanos == 60000000000u);
  assert_true(hp_config_parse_seconds("0.25", &nanos) && nanos == 250000000u);
  assert_true(hp_config_parse_seconds(".5", &nanos) && nanos == 500000000u);
  assert_true(hp_config_parse_seconds("0.0000000019", &nanos) && nanos == 1);
  static const char *const bad[] = {"", ".", "1.", "-1", "1s", "1e3", "inf", "99999999999999999999", "1000000001"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(hp_config_parse_seconds(bad[i], &nanos));
}

static void signals_by_name_or_number(void **state) {
  (void)state;
  int number;
  assert_true(hp_config_parse_signal("USR1", &number) && number == SIGUSR1);
  assert_true(hp_config_parse_signal("SIGPROF", &number) && number == SIGPROF);
  assert_true(hp_config_parse_signal("12", &number) && number == 12);
  assert_true(hp_config_parse_signal("RTMIN+3", &number) && number == SIGRTMIN + 3);
  assert_true(hp_config_parse_signal("SIGRTMAX-1", &number) && number == SIGRTMAX - 1);
  assert_true(hp_config_parse_signal("none", &number) && number == 0);
  static const char *const bad[] = {"",   "0",    "65",       "KILL",    "SIGSTOP",  "9",    "32",
                                    "33", "usr1", "RTMIN+99", "RTMIN-1", "RTMAX-64", "12x",  "-1",
                                    "11", "SEGV", "SIGBUS",   "FPE",     "ILL",      "TRAP", "SYS"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(hp_config_parse_signal(bad[i], &number));
}

static void defaults_are_those_of_the_manual(void **state) {
  (void)state;
  struct hp_config c = read_one("HEAPPROF_OUT="); /* empty is unset */
  assert_int_equal(complaint_count, 0);
  assert_int_equal(c.sample_rate_bytes, 524288);
  assert_string_equal(c.out_template, "heapprof.%e.%p.%n.pb.gz");
  assert_int_equal(c.signal, SIGUSR2);
  assert_false(c.signal_is_chosen);
  assert_int_equal(c.period_nanos, 60000000000u);
  assert_int_equal(c.keep, 10);
  assert_true(c.exit_dump && c.symbols && c.children && !c.peak);
  assert_int_equal(c.kinds, 1 << HP_KIND_FULL);
  assert_int_equal(c.growth_bytes, 0);
  assert_int_equal(c.max_depth, 128);
  assert_int_equal(c.max_memory_bytes, 256 << 20);
  assert_int_equal(c.labels, 0);
  assert_int_equal(c.log_level, HP_LOG_WARN);
  assert_null(c.log_file);
}

static void each_variable_is_read(void **state) {
  (void)state;
  assert_int_equal(read_one("HEAPPROF_SAMPLE_RATE=16k").sample_rate_bytes, 16384);
  assert_string_equal(read_one("HEAPPROF_OUT=/x/%p").out_template, "/x/%p");
  assert_true(read_one("HEAPPROF_SIGNAL=SIGUSR2").signal_is_chosen);
  assert_int_equal(read_one("HEAPPROF_PERIOD=1.5").period_nanos, 1500000000u);
  assert_int_equal(read_one("HEAPPROF_KEEP=0").keep, 0);
  assert_false(read_one("HEAPPROF_EXIT_DUMP=0").exit_dump);
  assert_int_equal(read_one("HEAPPROF_KIND=delta,full").kinds, 1 << HP_KIND_DELTA | 1 << HP_KIND_FULL);
  assert_int_equal(read_one("HEAPPROF_KIND=heap").kinds, 1 << HP_KIND_HEAP);
  assert_true(read_one("HEAPPROF_PEAK=1").peak);
  assert_int_equal(read_one("HEAPPROF_GROWTH=64m").growth_bytes, 64 << 20);
  assert_int_equal(read_one("HEAPPROF_MAX_DEPTH=1024").max_depth, 1024);
  assert_int_equal(read_one("HEAPPROF_MAX_MEMORY=2m").max_memory_bytes, 2 << 20);
  assert_int_equal(read_one("HEAPPROF_LABELS=thread,age").labels, HP_LABEL_THREAD | HP_LABEL_AGE);
  assert_int_equal(read_one("HEAPPROF_LABELS=size").labels, HP_LABEL_SIZE);
  assert_false(read_one("HEAPPROF_SYMBOLS=0").symbols);
  assert_false(read_one("HEAPPROF_CHILDREN=0").children);
  assert_int_equal(read_one("HEAPPROF_LOG=debug").log_level, HP_LOG_DEBUG);
  assert_string_equal(read_one("HEAPPROF_LOG_FILE=/tmp/l").log_file, "/tmp/l");
  assert_string_equal(read_one("HEAPPROF_LOG_FILE=logs/").log_file, "logs/heapprof.%e.%p.log"); /* no profile's name */
  assert_int_equal(complaint_count, 0);
}

static void a_bad_value_is_said_once_and_replaced_by_the_default(void **state) {
  (void)state;
  static const char *const bad[] = {
      "HEAPPROF_SAMPLE_RATE=fast", "HEAPPROF_SIGNAL=KILL",       "HEAPPROF_PERIOD=often",   "HEAPPROF_KEEP=-1",
      "HEAPPROF_EXIT_DUMP=yes",    "HEAPPROF_KIND=full,",        "HEAPPROF_KIND=peak",      "HEAPPROF_PEAK=2",
      "HEAPPROF_GROWTH=much",      "HEAPPROF_MAX_DEPTH=0",       "HEAPPROF_MAX_DEPTH=1025", "HEAPPROF_MAX_DEPTH=4294967297",
      "HEAPPROF_MAX_MEMORY=1x",    "HEAPPROF_LABELS=size,color", "HEAPPROF_SYMBOLS=on",     "HEAPPROF_CHILDREN=00",
      "HEAPPROF_LOG=loud"};
  struct hp_config defaults = read_one("A=b");
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct hp_config c = read_one(bad[i]);
    assert_int_equal(complaint_count, 1);
    assert_int_equal(strncmp(bad[i], last_variable, strlen(last_variable)), 0);
    assert_int_equal(c.sample_rate_bytes, defaults.sample_rate_bytes);
    assert_int_equal(c.signal, defaults.signal);
    assert_int_equal(c.period_nanos, defaults.period_nanos);
    assert_int_equal(c.keep, defaults.keep);
    assert_int_equal(c.kinds, defaults.kinds);
    assert_int_equal(c.max_depth, defaults.max_depth);
    assert_int_equal(c.max_memory_bytes, defaults.max_memory_bytes);
    assert_int_equal(c.labels, defaults.labels);
    assert_int_equal(c.log_level, defaults.log_level);
    assert_true(c.exit_dump && c.symbols && c.children && !c.peak);
  }
}

static void a_ceiling_below_a_megabyte_is_one(void **state) {
  (void)state;
  assert_int_equal(read_one("HEAPPROF_MAX_MEMORY=1048575").max_memory_bytes, 1 << 20);
  assert_int_equal(complaint_count, 1);
  assert_string_equal(last_variable, "HEAPPROF_MAX_MEMORY");
  assert_int_equal(read_one("HEAPPROF_MAX_MEMORY=1m").max_memory_bytes, 1 << 20);
  assert_int_equal(complaint_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_have_suffixes_and_limits),
                                     cmocka_unit_test(a_ceiling_below_a_megabyte_is_one),
                                     cmocka_unit_test(seconds_are_decimals),
                                     cmocka_unit_test(signals_by_name_or_number),
                                     cmocka_unit_test(defaults_are_those_of_the_manual),
                                     cmocka_unit_test(each_variable_is_read),
                                     cmocka_unit_test(a_bad_value_is_said_once_and_replaced_by_the_default)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
