/* SPDX-License-Identifier: MIT
 * config.c - see config.h. */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "recorder.h"
#include "sampler.h"
#include "snapshot.h"

const char *hp_config_find(char *const *environment, const char *name) {
  size_t n = strlen(name);
  for (; environment != NULL && *environment != NULL; environment++) {
    if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=') {
      const char *value = *environment + n + 1;
      return value[0] == 0 ? NULL : value;
    }
  }
  return NULL;
}

/* ---- values ---- */

/* Digits only; *text moves behind them. False: none, or too many. */
static bool parse_digits(const char **text, uint64_t *out) {
  if (**text < '0' || **text > '9') return false;
  uint64_t value = 0;
  for (; **text >= '0' && **text <= '9'; (*text)++) {
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value)) {
      return false;
    }
  }
  *out = value;
  return true;
}

bool hp_config_parse_size(const char *text, uint64_t max, uint64_t *out) {
  uint64_t value;
  if (!parse_digits(&text, &value)) return false;
  unsigned shift = 0;
  if (*text != 0) {
    switch (*text++) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      default: return false;
    }
  }
  if (*text != 0 || value > max >> shift) return false;
  *out = value << shift;
  return true;
}

bool hp_config_parse_seconds(const char *text, uint64_t *out_nanos) {
  enum { SECONDS_MAX = 1000 * 1000 * 1000 };
  uint64_t seconds = 0, nanos = 0;
  if (*text != '.' && !parse_digits(&text, &seconds)) return false;
  if (seconds > SECONDS_MAX) return false;
  if (*text == '.') {
    text++;
    if (*text < '0' || *text > '9') return false;
    uint64_t unit = 100 * 1000 * 1000;
    for (; *text >= '0' && *text <= '9'; text++, unit /= 10) nanos += (uint64_t)(*text - '0') * unit;
  }
  if (*text != 0) return false;
  *out_nanos = seconds * 1000000000u + nanos;
  return true;
}

static int signal_by_name(const char *name) {
  static const struct {
    const char *name;
    int number;
  } names[] = {{"HUP", SIGHUP},       {"INT", SIGINT},   {"QUIT", SIGQUIT},   {"ILL", SIGILL},   {"TRAP", SIGTRAP},
               {"ABRT", SIGABRT},     {"IOT", SIGIOT},   {"BUS", SIGBUS},     {"FPE", SIGFPE},   {"USR1", SIGUSR1},
               {"SEGV", SIGSEGV},     {"USR2", SIGUSR2}, {"PIPE", SIGPIPE},   {"ALRM", SIGALRM}, {"TERM", SIGTERM},
               {"STKFLT", 16},        {"CHLD", SIGCHLD}, {"CLD", SIGCHLD},    {"CONT", SIGCONT}, {"TSTP", SIGTSTP},
               {"TTIN", SIGTTIN},     {"TTOU", SIGTTOU}, {"URG", SIGURG},     {"XCPU", SIGXCPU}, {"XFSZ", SIGXFSZ},
               {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH}, {"IO", SIGIO},     {"POLL", SIGPOLL},
               {"PWR", SIGPWR},       {"SYS", SIGSYS},   {"KILL", SIGKILL},   {"STOP", SIGSTOP}};
  for (size_t i = 0; i < HP_ARRAY_LENGTH(names); i++) {
    if (strcmp(name, names[i].name) == 0) return names[i].number;
  }
  return -1;
}

/* RTMIN, RTMIN+n, RTMAX, RTMAX-n. */
static int signal_by_realtime_name(const char *name) {
  uint64_t offset = 0;
  bool from_min = strncmp(name, "RTMIN", 5) == 0;
  if (!from_min && strncmp(name, "RTMAX", 5) != 0) return -1;
  name += 5;
  if (*name != 0) {
    if (*name++ != (from_min ? '+' : '-')) return -1;
    if (!parse_digits(&name, &offset) || *name != 0 || offset > 64) return -1;
  }
  return from_min ? SIGRTMIN + (int)offset : SIGRTMAX - (int)offset;
}

bool hp_config_parse_signal(const char *text, int *out) {
  if (strcmp(text, "none") == 0) {
    *out = 0;
    return true;
  }
  uint64_t number;
  int found;
  const char *at = text;
  if (parse_digits(&at, &number)) {
    if (*at != 0 || number == 0 || number > 64) return false;
    found = (int)number;
  } else {
    const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
    found = signal_by_name(name);
    if (found < 0) found = signal_by_realtime_name(name);
  }
  /* 32 and 33 are libc's own, KILL and STOP cannot be caught; and by a handler that returns from a fault the program would never end. */
  if (found <= 0 || found > SIGRTMAX || found == SIGKILL || found == SIGSTOP || found == 32 || found == 33) return false;
  if (found == SIGSEGV || found == SIGBUS || found == SIGFPE || found == SIGILL || found == SIGTRAP || found == SIGSYS)
    return false;
  *out = found;
  return true;
}

/* A comma list of words; each must be one of `words` and sets the bit of its place. */
static bool parse_words(const char *text, const char *const *words, unsigned *out_bits) {
  unsigned bits = 0;
  while (true) {
    size_t n = strcspn(text, ",");
    unsigned i = 0;
    while (words[i] != NULL && (strlen(words[i]) != n || strncmp(words[i], text, n) != 0)) i++;
    if (words[i] == NULL) return false;
    bits |= 1u << i;
    if (text[n] == 0) break;
    text += n + 1;
  }
  *out_bits = bits;
  return true;
}

/* ---- variables ---- */
struct reader {
  char *const *environment;
  hp_config_complain *complain;
};

static void read_size(const struct reader *r, const char *name, uint64_t max, const char *otherwise, uint64_t *value) {
  const char *text = hp_config_find(r->environment, name);
  if (text != NULL && !hp_config_parse_size(text, max, value)) r->complain(name, text, otherwise);
}

static void read_flag(const struct reader *r, const char *name, const char *otherwise, bool *value) {
  const char *text = hp_config_find(r->environment, name);
  if (text == NULL) return;
  if (text[0] >= '0' && text[0] <= '1' && text[1] == 0) {
    *value = text[0] == '1';
  } else {
    r->complain(name, text, otherwise);
  }
}

static void read_words(const struct reader *r, const char *name, const char *const *words, const char *otherwise,
                       unsigned *value) {
  const char *text = hp_config_find(r->environment, name);
  if (text != NULL && !parse_words(text, words, value)) r->complain(name, text, otherwise);
}

/* Longer than any path that can be opened; what is cut off would only have made an error of another length. */
enum { KEPT_PATH_BYTES = 8192 };

static const char *keep_path(char kept[KEPT_PATH_BYTES], const char *path) {
  if (path == NULL) return NULL;
  size_t n = strnlen(path, KEPT_PATH_BYTES - 1);
  memcpy(kept, path, n);
  kept[n] = 0;
  return kept;
}

static const char *const log_words[] = {"off", "error", "warn", "info", "debug", NULL};
const char *const hp_config_kind_words[] = {"full", "heap", "alloc", "delta", NULL};
_Static_assert(HP_ARRAY_LENGTH(hp_config_kind_words) == HP_KIND_PEAK + 1, "a word for each kind, and the end");
static const char *const label_words[] = {"size", "thread", "age", NULL};

/* A folder's default name, of its own: by HEAPPROF_OUT's the lines would be appended to the first profile. */
static const char log_name[] = "heapprof.%e.%p.log";

static const char *keep_log_file(const char *path) {
  static char kept[KEPT_PATH_BYTES + sizeof log_name];
  if (keep_path(kept, path) == NULL) return NULL;
  size_t n = strlen(kept);
  if (kept[n - 1] == '/') memcpy(kept + n, log_name, sizeof log_name);
  return kept;
}

/* First, since they decide where complaints about the others go. */
static void read_log(const struct reader *r, struct hp_config *c) {
  c->log_file = keep_log_file(hp_config_find(r->environment, "HEAPPROF_LOG_FILE"));
  const char *text = hp_config_find(r->environment, "HEAPPROF_LOG");
  if (text == NULL) return;
  for (unsigned i = 0; log_words[i] != NULL; i++) {
    if (strcmp(text, log_words[i]) == 0) {
      c->log_level = (enum hp_log_level)i;
      return;
    }
  }
  r->complain("HEAPPROF_LOG", text, "is none of off, error, warn, info, debug; using warn");
}

void hp_config_read(struct hp_config *c, char *const *environment, hp_config_complain *complain) {
  const struct reader r = {environment, complain};
  *c = (struct hp_config){.sample_rate_bytes = HP_SAMPLE_RATE_DEFAULT,
                          .out_template = HP_DEFAULT_TEMPLATE,
                          .signal = SIGUSR2,
                          .period_nanos = 60ull * 1000000000u,
                          .keep = 10,
                          .exit_dump = true,
                          .kinds = 1u << HP_KIND_FULL,
                          .max_depth = 128,
                          .max_memory_bytes = 256ull << 20,
                          .symbols = true,
                          .children = true,
                          .log_level = HP_LOG_WARN};
  read_log(&r, c);
  read_size(&r, "HEAPPROF_SAMPLE_RATE", HP_SAMPLE_RATE_MAX,
            "is no number of bytes from 0 to 1024g (suffixes k, m, g); using 512k", &c->sample_rate_bytes);
  static char kept_out_template[KEPT_PATH_BYTES];
  const char *text = hp_config_find(environment, "HEAPPROF_OUT");
  c->out_is_chosen = text != NULL;
  if (text != NULL) c->out_template = keep_path(kept_out_template, text);
  text = hp_config_find(environment, "HEAPPROF_SIGNAL");
  c->signal_is_chosen = text != NULL && hp_config_parse_signal(text, &c->signal);
  if (text != NULL && !c->signal_is_chosen) {
    complain("HEAPPROF_SIGNAL", text, "is no signal that can ask for a profile; using SIGUSR2");
  }
  text = hp_config_find(environment, "HEAPPROF_PERIOD");
  if (text != NULL && !hp_config_parse_seconds(text, &c->period_nanos)) {
    complain("HEAPPROF_PERIOD", text, "is no number of seconds; using 60");
  }
  uint64_t keep = c->keep, depth = c->max_depth;
  read_size(&r, "HEAPPROF_KEEP", UINT32_MAX, "is no number of files; using 10", &keep);
  read_flag(&r, "HEAPPROF_EXIT_DUMP", "is neither 0 nor 1; using 1", &c->exit_dump);
  read_words(&r, "HEAPPROF_KIND", hp_config_kind_words, "is no list of full, heap, alloc, delta; using full", &c->kinds);
  read_flag(&r, "HEAPPROF_PEAK", "is neither 0 nor 1; using 0", &c->peak);
  read_size(&r, "HEAPPROF_GROWTH", (uint64_t)1 << 62, "is no number of bytes; growth dumps are off", &c->growth_bytes);
  read_size(&r, "HEAPPROF_MAX_DEPTH", UINT32_MAX, "is no number of frames from 1 to 1024; using 128", &depth);
  if (depth < 1 || depth > 1024) {
    complain("HEAPPROF_MAX_DEPTH", hp_config_find(environment, "HEAPPROF_MAX_DEPTH"), "is not from 1 to 1024; using 128");
    depth = 128;
  }
  read_size(&r, "HEAPPROF_MAX_MEMORY", (uint64_t)1 << 46, "is no number of bytes; using 256m", &c->max_memory_bytes);
  if (c->max_memory_bytes < 1u << 20) {
    complain("HEAPPROF_MAX_MEMORY", hp_config_find(environment, "HEAPPROF_MAX_MEMORY"), "is less than 1m; using 1m");
    c->max_memory_bytes = 1u << 20;
  }
  read_words(&r, "HEAPPROF_LABELS", label_words, "is no list of size, age, thread; using none", &c->labels);
  read_flag(&r, "HEAPPROF_SYMBOLS", "is neither 0 nor 1; using 1", &c->symbols);
  read_flag(&r, "HEAPPROF_CHILDREN", "is neither 0 nor 1; using 1", &c->children);
  c->keep = (uint32_t)keep;
  c->max_depth = (uint32_t)depth;
}
