/* SPDX-License-Identifier: MIT
 * cmd_serve.c - heapprof serve: profiles of a process over HTTP, for `go tool pprof` and for scraping agents.
 *
 * This thread only waits: for a signal, for the end of the process, for slow clients. Requests run in libmicrohttpd's
 * threads.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "process_view.h"
#include "serve_answer.h"
#include "serve_http.h"
#include "serve_target.h"

enum { DUMP_SECONDS = 15 };

static const char help[] =
    "usage: heapprof serve [option]... PID\n"
    "       heapprof serve [option]... [--] COMMAND [argument]...\n"
    "Answers HTTP requests with heap profiles of a running profiled process, or of a\n"
    "command that it starts profiled:\n"
    "  /debug/pprof/heap    memory in use     ?seconds=N  the change over N seconds\n"
    "  /debug/pprof/allocs  allocations       ?debug=1    as text\n"
    "  /metrics             sums for Prometheus\n"
    "\n"
    "  -l, --listen=WHERE  ADDRESS:PORT or PORT (default 127.0.0.1:6060); whoever can\n"
    "                      reach it can read all profiles; 0: any free port\n"
    "  -m, --max-seconds=N longest ?seconds= (default 300)\n"
    "  -k, --keep          keep the dumps it asked for; default: removed once read\n"
    "  -t, --timeout=S     seconds to wait for a dump (default 15)\n"
    "      --library=FILE  libheapprof.so, if it is not beside heapprof\n"
    "\n"
    "go tool pprof http://127.0.0.1:6060/debug/pprof/heap shows one. It ends with the\n"
    "process; of a command it passes the exit status on. HEAPPROF_... variables apply\n"
    "to a command as with LD_PRELOAD.";

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"max-seconds", required_argument, NULL, 'm'},
    {"keep", no_argument, NULL, 'k'},
    {"timeout", required_argument, NULL, 't'},
    {"library", required_argument, NULL, 'L'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct serving {
  const char *listen, *library;
  char **command; /* null: target.pid runs already */
  struct hp_serve serve;
  struct hp_serve_target target;
  struct hp_serve_http *http;
};

/* What a shell would say of the ended child. */
static int exit_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/* Until the process ends or we are told to stop. Signals to stop go to a command first; it decides. */
static int wait_for_end(struct serving *serving, const sigset_t *handled) {
  struct hp_serve_target *target = &serving->target;
  int status = 0;
  for (;;) {
    siginfo_t info;
    int signal_number = sigtimedwait(handled, &info, &(struct timespec){.tv_sec = 1});
    bool is_stop = signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP;
    if (is_stop && !target->is_child) return 0;
    /* What the terminal sends it has sent to the command as well. */
    if (is_stop && info.si_code != SI_KERNEL) kill((pid_t)target->pid, signal_number);
    if (!hp_serve_target_runs(target, &status)) break;
    hp_serve_http_reap(serving->http);
  }
  if (target->is_child) return exit_status(status);
  hp_note("process %" PRId64 " has ended", target->pid);
  return 0;
}

static int look_first(const struct hp_serve_target *target, struct hp_error *error) {
  struct hp_process process;
  memset(&process, 0, sizeof process);
  int result = hp_process_look(target->pid, &process, error);
  if (result == 0 && !process.has_library)
    result = hp_error_set(
        error, "process %" PRId64 " is not profiled: libheapprof.so is not in it (start it with heapprof run)", target->pid);
  hp_process_free(&process);
  return result;
}

static int serve(struct serving *serving, int64_t delta_seconds_max) {
  struct hp_error error;
  sigset_t handled;
  struct hp_serve_signals found;
  int result = serving->command != NULL ? hp_serve_target_prepare(&serving->target, serving->library, &error)
                                        : look_first(&serving->target, &error);
  if (result != 0) return hp_fail(&error);
  sigemptyset(&handled);
  sigaddset(&handled, SIGINT);
  sigaddset(&handled, SIGTERM);
  sigaddset(&handled, SIGHUP);
  sigaddset(&handled, SIGCHLD);
  sigprocmask(SIG_BLOCK, &handled, &found.mask);
  found.on_pipe = signal(SIGPIPE, SIG_IGN);
  found.on_child = signal(SIGCHLD, SIG_DFL); /* inherited as ignored it would leave no exit status */
  hp_serve_init(&serving->serve, hp_serve_target_fetch, &serving->target);
  serving->serve.delta_seconds_max = delta_seconds_max;
  serving->http = hp_serve_http_start(&serving->serve, serving->listen, &error);
  int status = 1;
  if (serving->http != NULL) {
    if (serving->command == NULL || hp_serve_target_start(&serving->target, serving->command, &found, &error) == 0) {
      hp_note("process %" PRId64 " at http://%s/debug/pprof/", serving->target.pid, hp_serve_http_address(serving->http));
      status = wait_for_end(serving, &handled);
    } else {
      hp_fail(&error);
    }
    hp_serve_stop(&serving->serve);
    hp_serve_http_stop(serving->http);
  } else {
    hp_fail(&error);
  }
  hp_serve_free(&serving->serve);
  hp_serve_target_free(&serving->target);
  return status;
}

int hp_cmd_serve(int argc, char **argv) {
  struct serving serving = {.listen = "127.0.0.1:6060", .target = {.timeout_seconds = DUMP_SECONDS}};
  int64_t seconds_max = HP_SERVE_DELTA_SECONDS_MAX;
  int option;
  while ((option = getopt_long(argc, argv, "+:l:m:kt:h", options, NULL)) != -1) {
    switch (option) {
      case 'l': serving.listen = optarg; break;
      case 'm':
        if (hp_parse_integer(optarg, 1, 86400, &seconds_max) != 0)
          return hp_usage("serve", "-m %s is no number of seconds", optarg);
        break;
      case 'k': serving.target.keep_files = true; break;
      case 't':
        if (hp_parse_integer(optarg, 1, 3600, &serving.target.timeout_seconds) != 0)
          return hp_usage("serve", "-t %s is no number of seconds", optarg);
        break;
      case 'L': serving.library = optarg; break;
      case 'h': puts(help); return 0;
      default: return hp_option_error("serve", argv, option);
    }
  }
  if (optind == argc) return hp_usage("serve", "a process id or a command is missing");
  if (argc - optind > 1 || hp_parse_integer(argv[optind], 1, INT32_MAX, &serving.target.pid) != 0) {
    serving.target.pid = 0;
    serving.command = argv + optind;
  }
  return serve(&serving, seconds_max);
}
