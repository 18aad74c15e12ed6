/* SPDX-License-Identifier: MIT
 * child_run.c - see child_run.h.
 *
 * All signals are blocked and taken one by one with sigwaitinfo, SIGCHLD among them: no handlers, no races. What a signal does to
 * the child is the child's business, so none ends us before it.
 */
#include "child_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Synchronous faults are ours alone, and the two that cannot be caught cannot be passed on. */
static bool is_own(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGPIPE:
    case SIGKILL:
    case SIGSTOP: return true;
    default: return false;
  }
}

/* The kernel sends these to the whole foreground group: the child has had its own. */
static bool comes_from_terminal(const siginfo_t *info) {
  bool is_terminal_signal = info->si_signo == SIGINT || info->si_signo == SIGQUIT || info->si_signo == SIGTSTP ||
                            info->si_signo == SIGWINCH || info->si_signo == SIGHUP || info->si_signo == SIGTTIN ||
                            info->si_signo == SIGTTOU;
  return is_terminal_signal && info->si_code == SI_KERNEL;
}

static void exec_child(char **command, const sigset_t *mask, void (*on_child)(int), int failure_pipe)
    __attribute__((noreturn));

static void exec_child(char **command, const sigset_t *mask, void (*on_child)(int), int failure_pipe) {
  signal(SIGCHLD, on_child); /* it is to find what we found */
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(command[0], command);
  int failure = errno;
  ssize_t ignored = write(failure_pipe, &failure, sizeof failure);
  (void)ignored;
  _exit(127);
}

/* The errno of the exec, or 0: the pipe closes when it succeeds. */
static int read_failure(int failure_pipe) {
  int failure = 0;
  ssize_t count;
  do count = read(failure_pipe, &failure, sizeof failure);
  while (count < 0 && errno == EINTR);
  close(failure_pipe);
  return count == (ssize_t)sizeof failure ? failure : 0;
}

/* Takes what has happened to the child; true when it has ended. */
static bool has_ended(pid_t child, int *out_status) {
  int status;
  while (waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
    if (WIFSTOPPED(status)) {
      raise(SIGSTOP); /* the shell that waits for us sees the stop */
      kill(child, SIGCONT);
      continue;
    }
    *out_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }
  return false;
}

static int wait_for(pid_t child, const sigset_t *taken) {
  int status;
  while (!has_ended(child, &status)) {
    siginfo_t info;
    int signal = sigwaitinfo(taken, &info);
    if (signal > 0 && signal != SIGCHLD && !comes_from_terminal(&info)) kill(child, signal);
  }
  return status;
}

int hp_child_run(char **command, pid_t *out_pid, struct hp_error *error) {
  int failure_pipe[2];
  if (pipe2(failure_pipe, O_CLOEXEC) != 0) return hp_error_set(error, "cannot make a pipe: %s", strerror(errno));
  sigset_t taken, mask;
  sigemptyset(&taken);
  for (int signal = 1; signal <= SIGRTMAX; signal++)
    if (!is_own(signal)) sigaddset(&taken, signal);
  sigprocmask(SIG_BLOCK, &taken, &mask);
  void (*on_child)(int) = signal(SIGCHLD, SIG_DFL); /* inherited as ignored it would leave nothing to wait for */
  pid_t child = fork();
  if (child == 0) exec_child(command, &mask, on_child, failure_pipe[1]);
  int failure = child < 0 ? errno : 0;
  close(failure_pipe[1]);
  if (failure == 0)
    failure = read_failure(failure_pipe[0]);
  else
    close(failure_pipe[0]);
  int status = failure == 0 ? wait_for(child, &taken) : 0;
  if (failure != 0 && child > 0) waitpid(child, NULL, 0);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  if (failure != 0) return hp_error_set(error, "cannot run %s: %s", command[0], strerror(failure));
  *out_pid = child;
  return status;
}
