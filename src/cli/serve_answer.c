/* SPDX-License-Identifier: MIT
 * serve_answer.c - see serve_answer.h. Paths, parameters, headers and error texts follow net/http/pprof of Go, which is what
 * scraping agents are built for.
 */
#include "serve_answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli_memory.h"
#include "command.h"
#include "merge.h"
#include "profile_writer.h"
#include "serve_text.h"

static const char text_type[] = "text/plain; charset=utf-8";

void hp_serve_init(struct hp_serve *serve, hp_serve_fetch *fetch, void *context) {
  memset(serve, 0, sizeof *serve);
  serve->fetch = fetch;
  serve->context = context;
  serve->delta_seconds_max = HP_SERVE_DELTA_SECONDS_MAX;
  pthread_mutex_init(&serve->fetching, NULL);
  pthread_mutex_init(&serve->lock, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&serve->stopped, &attributes);
  pthread_condattr_destroy(&attributes);
}

void hp_serve_free(struct hp_serve *serve) {
  free(serve->metrics);
  pthread_cond_destroy(&serve->stopped);
  pthread_mutex_destroy(&serve->lock);
  pthread_mutex_destroy(&serve->fetching);
}

void hp_serve_stop(struct hp_serve *serve) {
  pthread_mutex_lock(&serve->lock);
  serve->stopping = true;
  pthread_cond_broadcast(&serve->stopped);
  pthread_mutex_unlock(&serve->lock);
}

void hp_serve_answer_line(struct hp_serve_answer *out, unsigned status, const char *format, ...) {
  char text[HP_ERROR_MAX + 64];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text - 1, format, arguments);
  va_end(arguments);
  strcat(text, "\n");
  *out = (struct hp_serve_answer){.status = status, .type = text_type, .body = hp_strdup(text), .body_bytes = strlen(text)};
}

/* Takes `fetching`, or answers that the queue is too long. */
static bool enter_fetch(struct hp_serve *serve, struct hp_serve_answer *out) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += HP_SERVE_QUEUE_SECONDS;
  if (pthread_mutex_timedlock(&serve->fetching, &until) == 0) return true;
  hp_serve_answer_line(out, 503, "too many requests wait for a dump of the process");
  return false;
}

/* A fresh profile, or null and the answer says why. */
static struct hp_profile *fetch(struct hp_serve *serve, struct hp_serve_answer *out) {
  struct hp_error error;
  struct hp_profile *profile = NULL;
  if (!enter_fetch(serve, out)) return NULL;
  int result = serve->fetch(serve->context, &profile, &error);
  pthread_mutex_unlock(&serve->fetching);
  if (result == 0) return profile;
  hp_serve_answer_line(out, 503, "%s", error.text);
  return NULL;
}

/* What `write` prints, as the body. */
static void answer_text(struct hp_serve_answer *out, const char *type, void (*write)(FILE *, const struct hp_profile *),
                        const struct hp_profile *profile) {
  *out = (struct hp_serve_answer){.status = 200, .type = type};
  char *text = NULL;
  FILE *memory = open_memstream(&text, &out->body_bytes);
  if (memory != NULL) {
    write(memory, profile);
    if (fclose(memory) == 0) {
      out->body = text;
      return;
    }
  }
  free(text);
  hp_serve_answer_line(out, 500, "out of memory");
}

/* The gzipped profile. `allocs` differs from `heap`, as in Go, by the column a reader shows first. */
static void answer_profile(struct hp_serve_answer *out, struct hp_profile *profile, const char *name, bool is_delta) {
  struct hp_error error;
  bool is_allocs = strcmp(name, "allocs") == 0;
  const char *first = is_allocs ? "alloc_space" : "inuse_space";
  if (hp_profile_type_find(profile, first) != HP_NONE) profile->default_type = hp_profile_intern(profile, first);
  *out = (struct hp_serve_answer){.status = 200, .type = "application/octet-stream"};
  out->file_name = is_allocs ? (is_delta ? "allocs-delta" : "allocs") : is_delta ? "heap-delta" : "heap";
  if (hp_profile_write_memory(profile, &out->body, &out->body_bytes, &error) != 0)
    hp_serve_answer_line(out, 500, "%s", error.text);
}

/* Waits, but not longer than the server runs: false then. */
static bool sleep_seconds(struct hp_serve *serve, int64_t seconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += seconds;
  pthread_mutex_lock(&serve->lock);
  while (!serve->stopping && pthread_cond_timedwait(&serve->stopped, &serve->lock, &until) != ETIMEDOUT) continue;
  bool goes_on = !serve->stopping;
  pthread_mutex_unlock(&serve->lock);
  return goes_on;
}

static bool enter_delta(struct hp_serve *serve) {
  pthread_mutex_lock(&serve->lock);
  bool may = serve->deltas < HP_SERVE_DELTAS_MAX && !serve->stopping;
  if (may) serve->deltas++;
  pthread_mutex_unlock(&serve->lock);
  return may;
}

static void leave_delta(struct hp_serve *serve) {
  pthread_mutex_lock(&serve->lock);
  serve->deltas--;
  pthread_mutex_unlock(&serve->lock);
}

/* `now` minus `before`; both are freed. */
static void answer_difference(struct hp_serve_answer *out, struct hp_profile *before, struct hp_profile *now,
                              const char *name) {
  struct hp_error error;
  struct hp_merge *merge = hp_merge_new();
  int result = hp_merge_add(merge, now, "the second dump", 1, &error);
  if (result == 0) result = hp_merge_add(merge, before, "the first dump", -1, &error);
  struct hp_profile *difference = hp_merge_finish(merge);
  if (result != 0) {
    hp_serve_answer_line(out, 500, "%s", error.text);
  } else {
    difference->time_nanos = now->time_nanos;
    difference->duration_nanos = now->time_nanos - before->time_nanos;
    hp_profile_mark_difference(difference, true);
    answer_profile(out, difference, name, true);
  }
  hp_profile_free(difference);
  hp_profile_free(before);
  hp_profile_free(now);
}

static void answer_delta(struct hp_serve *serve, const char *name, int64_t seconds, struct hp_serve_answer *out) {
  if (!enter_delta(serve)) {
    hp_serve_answer_line(out, 503, "%d requests with seconds= are under way already", HP_SERVE_DELTAS_MAX);
    return;
  }
  struct hp_profile *before = fetch(serve, out), *now = NULL;
  if (before != NULL) {
    if (!sleep_seconds(serve, seconds))
      hp_serve_answer_line(out, 503, "the server stops");
    else if ((now = fetch(serve, out)) != NULL)
      answer_difference(out, before, now, name);
    if (now == NULL) hp_profile_free(before);
  }
  leave_delta(serve);
}

static void answer_heap(struct hp_serve *serve, const struct hp_serve_request *request, const char *name,
                        struct hp_serve_answer *out) {
  bool is_text = request->debug != NULL && strtol(request->debug, NULL, 10) != 0;
  if (request->seconds != NULL && request->seconds[0] != '\0') {
    int64_t seconds;
    if (hp_parse_integer(request->seconds, 1, INT64_MAX, &seconds) != 0)
      hp_serve_answer_line(out, 400, "invalid value for \"seconds\" - must be a positive integer");
    else if (seconds > serve->delta_seconds_max)
      hp_serve_answer_line(out, 400, "\"seconds\" is more than this server allows (%lld)",
                           (long long)serve->delta_seconds_max);
    else if (is_text)
      hp_serve_answer_line(out, 400, "seconds and debug params are incompatible");
    else
      answer_delta(serve, name, seconds, out);
    return;
  }
  struct hp_profile *profile = fetch(serve, out);
  if (profile == NULL) return;
  if (is_text)
    answer_text(out, text_type, hp_serve_text_write, profile);
  else
    answer_profile(out, profile, name, false);
  hp_profile_free(profile);
}

static int64_t monotonic_nanos(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void answer_metrics(struct hp_serve *serve, struct hp_serve_answer *out) {
  static const char metrics_type[] = "text/plain; version=0.0.4; charset=utf-8";
  struct hp_error error;
  struct hp_profile *profile = NULL;
  if (!enter_fetch(serve, out)) return;
  bool is_fresh =
      serve->metrics != NULL && monotonic_nanos() - serve->metrics_nanos < HP_SERVE_METRICS_SECONDS * INT64_C(1000000000);
  if (!is_fresh && serve->fetch(serve->context, &profile, &error) != 0) {
    pthread_mutex_unlock(&serve->fetching);
    hp_serve_answer_line(out, 503, "%s", error.text);
    return;
  }
  if (is_fresh) {
    *out = (struct hp_serve_answer){200, metrics_type, NULL, NULL, hp_strdup(serve->metrics), strlen(serve->metrics)};
  } else {
    answer_text(out, metrics_type, hp_serve_metrics_write, profile);
    hp_profile_free(profile);
    if (out->status == 200) {
      free(serve->metrics);
      serve->metrics = hp_strdup(out->body);
      serve->metrics_nanos = monotonic_nanos();
    }
  }
  pthread_mutex_unlock(&serve->fetching);
}

static void answer_index(FILE *out, const struct hp_profile *profile) {
  (void)profile;
  fputs(hp_serve_index, out);
}

void hp_serve_answer(struct hp_serve *serve, const struct hp_serve_request *request, struct hp_serve_answer *out) {
  const char *path = request->path;
  if (strcmp(path, HP_SERVE_SYMBOL_PATH) == 0) { /* names are in the profile; what has none has none */
    hp_serve_answer_line(out, 200, "num_symbols: 0");
  } else if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
    hp_serve_answer_line(out, 405, "only GET and HEAD");
  } else if (strcmp(path, "/debug/pprof/heap") == 0) {
    answer_heap(serve, request, "heap", out);
  } else if (strcmp(path, "/debug/pprof/allocs") == 0) {
    answer_heap(serve, request, "allocs", out);
  } else if (strcmp(path, "/metrics") == 0) {
    answer_metrics(serve, out);
  } else if (strcmp(path, "/debug/pprof/") == 0) {
    answer_text(out, "text/html; charset=utf-8", answer_index, NULL);
  } else if (strcmp(path, "/") == 0 || strcmp(path, "/debug/pprof") == 0) {
    hp_serve_answer_line(out, 302, "/debug/pprof/");
    out->location = "/debug/pprof/";
  } else {
    hp_serve_answer_line(out, 404, "no such page; /debug/pprof/ lists them");
  }
}
