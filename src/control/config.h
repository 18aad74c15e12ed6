/* SPDX-License-Identifier: MIT
 * config.h - the environment as one validated struct. Bad values are reported (one line each) and replaced by the default.
 * The environment is read from `environ` directly (bash replaces getenv by a function that allocates), once, at start-up. */
#ifndef HP_CONFIG_H
#define HP_CONFIG_H

#include "compiler.h"

enum hp_log_level { HP_LOG_OFF, HP_LOG_ERROR, HP_LOG_WARN, HP_LOG_INFO, HP_LOG_DEBUG };

struct hp_config {
  uint64_t sample_rate_bytes;
  const char *out_template; /* as given: may be relative, may end in '/' */
  bool out_is_chosen;       /* HEAPPROF_OUT named it */
  int signal;               /* 0: none */
  bool signal_is_chosen;    /* HEAPPROF_SIGNAL named it */
  uint64_t period_nanos;    /* 0: none */
  uint32_t keep;            /* periodic files kept; 0: all */
  bool exit_dump;
  unsigned kinds; /* bit set of 1 << enum hp_profile_kind */
  bool peak;
  uint64_t growth_bytes; /* 0: off */
  uint32_t max_depth;
  uint64_t max_memory_bytes;
  unsigned labels; /* enum hp_recorder_labels */
  bool symbols;
  bool children;
  enum hp_log_level log_level;
  const char *log_file; /* NULL: stderr; never ends in '/' */
};

/* By enum hp_profile_kind, but the peak, which has a variable of its own; NULL at the end. */
extern const char *const hp_config_kind_words[];

#define HP_DEFAULT_TEMPLATE "heapprof.%e.%p.%n.pb.gz"

/* What is wrong with a value: `text` says why and what is used instead, without the variable's name. */
typedef void hp_config_complain(const char *variable, const char *value, const char *text);

/* Fill in *out from environ-like strings "NAME=value" (NULL-terminated; NULL: none). Paths are copied into static memory:
 * servers that set their process title (redis, nginx) write over the environment. Called once. Complaints come after the log
 * settings are known (in *out). Takes no lock and allocates nothing; one caller, at start-up. */
void hp_config_read(struct hp_config *out, char *const *environment, hp_config_complain *complain);

/* The value of a variable in an environ-like array, NULL if unset or empty. */
const char *hp_config_find(char *const *environment, const char *name);

/* Pure pieces, for tests and the fuzzer: "512k", "0.5", "SIGUSR2" or "none" (0). True on success; else *out is untouched. */
bool hp_config_parse_size(const char *text, uint64_t max, uint64_t *out);
bool hp_config_parse_seconds(const char *text, uint64_t *out_nanos);
bool hp_config_parse_signal(const char *text, int *out);

#endif
