/* SPDX-License-Identifier: MIT
 * log.c - see log.h. */
#include "log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "format.h"
#include "private_files.h"
#include "sys.h"

enum { LINE_BYTES = 560 };

static enum hp_log_level log_level = HP_LOG_WARN;
static const char *log_file;
static struct stat start_stderr;
static bool had_stderr;
static bool is_file_lost; /* said once */

void hp_log_init(void) { had_stderr = hp_sys_fstat(2, &start_stderr) == 0; }

void hp_log_configure(enum hp_log_level level, const char *absolute_file) {
  log_level = level;
  log_file = absolute_file;
  hp_store_relaxed(&is_file_lost, false);
}

/* Is descriptor 2 (or a duplicate of it) still meant for messages? What it was at the start is; so is a terminal or
 * /dev/null, or a file opened for appending, as daemons put there. A socket or a pipe of the program's own that got the
 * number 2 is not. */
static bool is_error_stream(int fd) {
  struct stat now;
  if (hp_sys_fstat(fd, &now) != 0) return false;
  if (had_stderr && now.st_dev == start_stderr.st_dev && now.st_ino == start_stderr.st_ino) return true;
  if (S_ISCHR(now.st_mode)) return true;
  if (!S_ISREG(now.st_mode)) return false;
  long flags = hp_syscall2(SYS_fcntl, fd, F_GETFL);
  return flags > 0 && (flags & O_APPEND) != 0;
}

/* A write that raises no signal: SIGPIPE, and SIGXFSZ where RLIMIT_FSIZE ends a file, are blocked, and taken out again if we caused
 * one. */
static void write_line(int fd, const char *line, size_t n) {
  const uint64_t pipe_bit = (uint64_t)1 << (SIGPIPE - 1), size_bit = (uint64_t)1 << (SIGXFSZ - 1);
  const uint64_t both = pipe_bit | size_bit;
  uint64_t old = 0, pending = 0;
  hp_sys_sigprocmask(SIG_BLOCK, &both, &old);
  hp_syscall2(SYS_rt_sigpending, &pending, 8);
  long result;
  do result = hp_sys_write(fd, line, n);
  while (result == -EINTR);
  const uint64_t caused = (result == -EPIPE ? pipe_bit : result == -EFBIG ? size_bit : 0) & ~pending;
  if (caused != 0) {
    const struct timespec zero = {0, 0};
    hp_syscall4(SYS_rt_sigtimedwait, &caused, NULL, &zero, 8);
  }
  hp_sys_sigprocmask(SIG_SETMASK, &old, NULL);
}

/* For where poll refuses: it takes no more descriptors than RLIMIT_NOFILE, which a sandbox may have set to 0. */
static bool is_ready_by_select(int fd) {
  uint64_t set = 1;
  const struct timespec zero = {0, 0};
  if (fd >= 64) return false;
  set <<= fd;
  return hp_syscall6(SYS_pselect6, fd + 1, 0, (long)&set, 0, (long)&zero, 0) == 1;
}

static bool is_ready(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLOUT};
  const struct timespec zero = {0, 0};
  long result = hp_syscall6(SYS_ppoll, (long)&p, 1, (long)&zero, 0, 8, 0);
  return result == -EINVAL ? is_ready_by_select(fd) : result == 1 && (p.revents & POLLOUT) != 0;
}

static void emit_on_stderr(const char *line, size_t n) {
  int fd = hp_private_files_on() ? hp_private_files_borrow(2) : 2;
  if (fd < 0) return;
  if (is_error_stream(fd) && is_ready(fd)) write_line(fd, line, n);
  if (hp_private_files_on()) hp_sys_close(fd);
}

/* False: *out_error is why. */
static bool emit_in_file(const char *line, size_t n, int *out_error) {
  int fd = hp_sys_open(log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW, 0600);
  if (fd < 0) {
    *out_error = -fd;
    return false;
  }
  write_line(fd, line, n);
  hp_sys_close(fd);
  return true;
}

/* The line with its end, in line[0..LINE_BYTES). Returns its length. */
static size_t compose(char *line, enum hp_log_level level, const char *format, va_list args) {
  static const char *const names[] = {"off", "error", "warn", "info", "debug"};
  struct hp_text text;
  hp_text_init(&text, line, LINE_BYTES - 1); /* room for the newline */
  hp_text_add(&text, "heapprof[%d]: %s: ", hp_sys_getpid(), names[level]);
  hp_text_vadd(&text, format, args);
  for (size_t i = 0; i < text.length; i++) { /* a path or a value must not break the line */
    if ((unsigned char)line[i] < ' ' || line[i] == 0x7F) line[i] = '?';
  }
  line[text.length] = '\n';
  return text.length + 1;
}

static HP_COLD HP_PRINTF(1, 2) void warn_on_stderr(const char *format, ...) {
  char line[LINE_BYTES];
  va_list args;
  va_start(args, format);
  size_t n = compose(line, HP_LOG_WARN, format, args);
  va_end(args);
  emit_on_stderr(line, n);
}

static void say_file_is_lost(int error) {
  if (log_level < HP_LOG_WARN || hp_exchange(&is_file_lost, true)) return;
  const char *why = hp_log_errno_text(error);
  warn_on_stderr("HEAPPROF_LOG_FILE: %s: %s; errors and warnings come here", log_file,
                 why == NULL ? "cannot be opened" : why);
}

/* What is wrong must be seen somewhere: where the file cannot be opened errors and warnings go to stderr, and nothing else. */
void hp_log(enum hp_log_level level, const char *format, ...) {
  if (level > log_level || log_level == HP_LOG_OFF) return;
  char line[LINE_BYTES];
  va_list args;
  va_start(args, format);
  size_t n = compose(line, level, format, args);
  va_end(args);
  int error = 0;
  if (log_file != NULL) {
    if (emit_in_file(line, n, &error)) return;
    say_file_is_lost(error);
    if (level > HP_LOG_WARN) return;
  }
  emit_on_stderr(line, n);
}

const char *hp_log_errno_text(int error) {
  switch (error < 0 ? -error : error) {
    case EPERM: return "Operation not permitted";
    case ENOENT: return "No such file or directory";
    case EIO: return "Input/output error";
    case ENXIO: return "Not a file";
    case EBADF: return "the program closed the file";
    case EAGAIN: return "Resource temporarily unavailable";
    case ENOMEM: return "Out of memory (the system's, or HEAPPROF_MAX_MEMORY)";
    case EACCES: return "Permission denied";
    case EBUSY: return "Device or resource busy";
    case EEXIST: return "File exists";
    case ENOTDIR: return "Not a directory";
    case EISDIR: return "Is a directory";
    case EINVAL: return "Invalid argument";
    case ENFILE: return "Too many open files in system";
    case EMFILE: return "Too many open files";
    case EFBIG: return "File too large";
    case ENOSPC: return "No space left on device";
    case EROFS: return "Read-only file system";
    case ENAMETOOLONG: return "File name too long";
    case ELOOP: return "Too many levels of symbolic links";
    case EDQUOT: return "Disk quota exceeded";
    case EBADMSG: return "the profile failed its own check";
    case ETXTBSY: return "Text file busy";
    case ENOSYS: return "Function not implemented";
    case EXDEV: return "Invalid cross-device link";
    default: return NULL;
  }
}
