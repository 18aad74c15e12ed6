/* SPDX-License-Identifier: MIT
 * serve_http.h - brings HTTP requests to serve_answer.h by libmicrohttpd, and keeps clients within bounds.
 *
 * Bounds      HP_SERVE_CONNECTIONS_MAX connections, one request each; 16 KiB for request line and headers; a body only for
 *             the path that takes one, up to 1 MiB; a request must have come within HP_SERVE_REQUEST_SECONDS; an idle or unread
 *             connection is closed after as long again.
 * Rebinding   while we listen on loopback only, the Host header must name loopback: a web page the user looks at could
 *             otherwise reach us under a name of its own.
 * Threads     one a connection, made by libmicrohttpd, signals as the thread that starts the server has them.
 */
#ifndef HP_SERVE_HTTP_H
#define HP_SERVE_HTTP_H

#include <stdbool.h>

#include "cli_error.h"
#include "serve_answer.h"

#define HP_SERVE_CONNECTIONS_MAX 32
#define HP_SERVE_REQUEST_SECONDS 10

struct hp_serve_http;

/* Listens on "address:port", "[address]:port", ":port" (all addresses) or "port" (loopback); port 0: any free one. Returns
 * null and a sentence if it cannot. `serve` must outlive the server. */
struct hp_serve_http *hp_serve_http_start(struct hp_serve *serve, const char *listen, struct hp_error *error);

/* "127.0.0.1:6060": where it listens. Lives as long as the server. */
const char *hp_serve_http_address(const struct hp_serve_http *http);

/* Closes connections that have been too slow. To be called about once a second. */
void hp_serve_http_reap(struct hp_serve_http *http);

/* Answers what is under way (hp_serve_stop makes that short), closes, frees. */
void hp_serve_http_stop(struct hp_serve_http *http);

#endif
