/* SPDX-License-Identifier: MIT
 * serve_answer.h - what heapprof serve answers to a request; knows no sockets (serve_http.h brings the requests).
 *
 * Threads     hp_serve_answer may run in many threads at once. Fetching a profile is serialised: one dump of the process at a
 *             time; who waits longer than HP_SERVE_QUEUE_SECONDS is told so (503). At most HP_SERVE_DELTAS_MAX requests with
 *             ?seconds= at once.
 * Stop        hp_serve_stop wakes the waiting ones; they answer 503.
 */
#ifndef HP_SERVE_ANSWER_H
#define HP_SERVE_ANSWER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli_error.h"
#include "profile_model.h"

/* Asked by pprof for the addresses it has no name for; the one path that takes POST. */
#define HP_SERVE_SYMBOL_PATH "/debug/pprof/symbol"

#define HP_SERVE_DELTAS_MAX 4
#define HP_SERVE_DELTA_SECONDS_MAX 300 /* unless asked otherwise */
#define HP_SERVE_QUEUE_SECONDS 30
#define HP_SERVE_METRICS_SECONDS 5 /* how long figures for /metrics are used again: a scrape costs a dump */

/* Gets a fresh profile of the process: 0 and *out (the caller frees it), or -1 and a sentence. Never called twice at once.
 */
typedef int hp_serve_fetch(void *context, struct hp_profile **out, struct hp_error *error);

struct hp_serve {
  hp_serve_fetch *fetch;
  void *context;
  int64_t delta_seconds_max;
  pthread_mutex_t fetching; /* held for a fetch; guards the metrics too */
  char *metrics;            /* text of the last /metrics, or null */
  int64_t metrics_nanos;    /* monotonic clock when it was made */
  pthread_mutex_t lock;     /* guards what follows */
  pthread_cond_t stopped;
  bool stopping;
  unsigned deltas; /* requests that wait for their second dump */
};

struct hp_serve_request {
  const char *method;
  const char *path;
  const char *seconds; /* query parameters, null if not given */
  const char *debug;
};

struct hp_serve_answer {
  unsigned status; /* HTTP */
  const char *type;
  const char *file_name; /* for Content-Disposition, or null */
  const char *location;  /* of a redirection, or null */
  void *body;            /* malloc'd, the caller frees it */
  size_t body_bytes;
};

/* fetch and context are used by every answer until hp_serve_free, which comes when no answer is under way. */
void hp_serve_init(struct hp_serve *serve, hp_serve_fetch *fetch, void *context);
void hp_serve_free(struct hp_serve *serve);

/* Answers; blocks for a dump, and for ?seconds=. Always fills *out. */
void hp_serve_answer(struct hp_serve *serve, const struct hp_serve_request *request, struct hp_serve_answer *out);

/* An answer that is one line of text. */
void hp_serve_answer_line(struct hp_serve_answer *out, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Any thread; not in a signal handler. */
void hp_serve_stop(struct hp_serve *serve);

#endif
