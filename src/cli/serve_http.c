/* SPDX-License-Identifier: MIT
 * serve_http.c - see serve_http.h.
 */
#include "serve_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli_memory.h"
#include "command.h"

#define REQUEST_MEMORY_BYTES ((size_t)16 * 1024)
#define BODY_BYTES_MAX (1024 * 1024)
#define THREAD_STACK_BYTES ((size_t)512 * 1024)
#define DEFAULT_ADDRESS "127.0.0.1"

/* A connection whose request has not come yet: the reaper shuts it down when it is late. */
struct waiting {
  struct MHD_Connection *connection; /* null: slot free */
  int fd;
  time_t since;
};

struct hp_serve_http {
  struct hp_serve *serve;
  struct MHD_Daemon *daemon;
  bool is_loopback;
  char address[80];
  pthread_mutex_t lock; /* guards `waiting`; libmicrohttpd closes a socket only after it has told us (on_connection) */
  struct waiting waiting[HP_SERVE_CONNECTIONS_MAX];
};

static time_t monotonic_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static void forget(struct hp_serve_http *http, const struct MHD_Connection *connection) {
  pthread_mutex_lock(&http->lock);
  for (int i = 0; i < HP_SERVE_CONNECTIONS_MAX; i++)
    if (http->waiting[i].connection == connection) http->waiting[i].connection = NULL;
  pthread_mutex_unlock(&http->lock);
}

static void remember(struct hp_serve_http *http, struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info == NULL) return;
  pthread_mutex_lock(&http->lock);
  for (int i = 0; i < HP_SERVE_CONNECTIONS_MAX; i++) {
    if (http->waiting[i].connection != NULL) continue;
    http->waiting[i] = (struct waiting){connection, info->connect_fd, monotonic_seconds()};
    break;
  }
  pthread_mutex_unlock(&http->lock);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code) {
  (void)socket_context;
  if (code == MHD_CONNECTION_NOTIFY_STARTED)
    remember(context, connection);
  else
    forget(context, connection);
}

void hp_serve_http_reap(struct hp_serve_http *http) {
  time_t now = monotonic_seconds();
  pthread_mutex_lock(&http->lock);
  for (int i = 0; i < HP_SERVE_CONNECTIONS_MAX; i++) {
    struct waiting *waiting = &http->waiting[i];
    if (waiting->connection != NULL && now - waiting->since > HP_SERVE_REQUEST_SECONDS) shutdown(waiting->fd, SHUT_RDWR);
  }
  pthread_mutex_unlock(&http->lock);
}

/* Does the Host header (without its port) name this machine's loopback? */
static bool is_loopback_name(const char *host) {
  char name[64];
  size_t length = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
  if (host[0] == '[') {
    host++;
    length--;
  }
  if (length >= sizeof name) return false;
  memcpy(name, host, length);
  name[length] = '\0';
  struct in_addr v4;
  struct in6_addr v6;
  if (strcasecmp(name, "localhost") == 0) return true;
  if (inet_pton(AF_INET, name, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static enum MHD_Result queue(struct MHD_Connection *connection, const struct hp_serve_answer *answer) {
  struct MHD_Response *response = MHD_create_response_from_buffer(answer->body_bytes, answer->body, MHD_RESPMEM_MUST_FREE);
  if (response == NULL) {
    free(answer->body);
    return MHD_NO;
  }
  char disposition[64];
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  if (answer->file_name != NULL) {
    snprintf(disposition, sizeof disposition, "attachment; filename=\"%s\"", answer->file_name);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, disposition);
  }
  if (answer->location != NULL) MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, answer->location);
  if (answer->status == 405) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
  MHD_destroy_response(response);
  return result;
}

/* May the request bring what it says it will bring? Only questions for symbols have a body. */
static bool is_body_fine(struct MHD_Connection *connection, const char *url) {
  const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
  bool is_chunked = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
  if (length == NULL && !is_chunked) return true;
  if (length != NULL && strcmp(length, "0") == 0 && !is_chunked) return true;
  int64_t bytes;
  return !is_chunked && strcmp(url, HP_SERVE_SYMBOL_PATH) == 0 && hp_parse_integer(length, 0, BODY_BYTES_MAX, &bytes) == 0;
}

/* Called once with the headers, for each piece of a body, and once more at the end: what is answered at the first call ends
 * the request, everything else is answered at the last. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_bytes, void **request_context) {
  static const char under_way;
  struct hp_serve_http *http = context;
  (void)version, (void)upload;
  struct hp_serve_answer answer;
  const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  if (*request_context == NULL) {
    if (!is_body_fine(connection, url)) {
      hp_serve_answer_line(&answer, 413, "no body, or not one of this size");
    } else if (http->is_loopback && host != NULL && !is_loopback_name(host)) {
      hp_serve_answer_line(&answer, 403, "the Host header must name this machine's loopback address");
    } else {
      *request_context = (void *)(uintptr_t)&under_way;
      return MHD_YES;
    }
    forget(http, connection);
    return queue(connection, &answer);
  }
  if (*upload_bytes != 0) {
    *upload_bytes = 0; /* read and passed over */
    return MHD_YES;
  }
  forget(http, connection);
  struct hp_serve_request request = {method, url, MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "seconds"),
                                     MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "debug")};
  hp_serve_answer(http->serve, &request, &answer);
  return queue(connection, &answer);
}

/* libmicrohttpd's messages about clients that break off or send rubbish: nothing the user need see. */
static void on_message(void *context, const char *format, va_list arguments) {
  (void)context, (void)format, (void)arguments;
}

/* "address:port" into its parts; either may be left out. */
static int split(const char *text, char *address, size_t room, const char **port, struct hp_error *error) {
  const char *colon = strrchr(text, ':'), *start = text, *end = colon;
  *port = colon != NULL ? colon + 1 : text;
  address[0] = '\0';
  if (colon == NULL) {
    snprintf(address, room, "%s", DEFAULT_ADDRESS);
  } else {
    if (text[0] == '[' && colon > text && colon[-1] == ']') {
      start++;
      end--;
    }
    if ((size_t)(end - start) >= room) return hp_error_set(error, "--listen %.100s: the address is too long", text);
    memcpy(address, start, (size_t)(end - start));
    address[end - start] = '\0';
  }
  if ((*port)[0] == '\0' || strspn(*port, "0123456789") != strlen(*port) || strlen(*port) > 5 || atoi(*port) > 65535)
    return hp_error_set(error, "--listen %.100s: the port must be a number up to 65535", text);
  return 0;
}

static bool is_loopback_address(const struct sockaddr *address) {
  if (address->sa_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Opens the socket ourselves: for its own error sentences, and closed on exec. */
static int open_socket(struct hp_serve_http *http, const char *listen_text, struct hp_error *error) {
  char address[64], host[64], service[8];
  const char *port;
  if (split(listen_text, address, sizeof address, &port, error) != 0) return -1;
  struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found;
  int failure = getaddrinfo(address[0] != '\0' ? address : NULL, port, &hints, &found);
  if (failure != 0) return hp_error_set(error, "--listen %.100s: %s", listen_text, gai_strerror(failure));
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_storage bound;
  socklen_t length = sizeof bound;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, HP_SERVE_CONNECTIONS_MAX) != 0 ||
      getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
    hp_error_set(error, "cannot listen on %.100s: %s", listen_text, strerror(errno));
    if (fd >= 0) close(fd);
    fd = -1;
  } else {
    http->is_loopback = is_loopback_address((struct sockaddr *)&bound);
    getnameinfo((struct sockaddr *)&bound, length, host, sizeof host, service, sizeof service,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(http->address, sizeof http->address, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, service);
  }
  freeaddrinfo(found);
  return fd;
}

struct hp_serve_http *hp_serve_http_start(struct hp_serve *serve, const char *listen_text, struct hp_error *error) {
  struct hp_serve_http *http = hp_alloc_zeroed(1, sizeof *http);
  http->serve = serve;
  pthread_mutex_init(&http->lock, NULL);
  int fd = open_socket(http, listen_text, error);
  if (fd >= 0) {
    http->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HP_SERVE_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)HP_SERVE_REQUEST_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_MEMORY_BYTES,
        MHD_OPTION_THREAD_STACK_SIZE, THREAD_STACK_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    if (http->daemon != NULL) return http;
    hp_error_set(error, "cannot start the HTTP server: %s", strerror(errno));
    close(fd);
  }
  pthread_mutex_destroy(&http->lock);
  free(http);
  return NULL;
}

const char *hp_serve_http_address(const struct hp_serve_http *http) { return http->address; }

void hp_serve_http_stop(struct hp_serve_http *http) {
  MHD_stop_daemon(http->daemon);
  pthread_mutex_destroy(&http->lock);
  free(http);
}
