/* SPDX-License-Identifier: MIT
 * sink.c - see sink.h.
 * The temporary name is short and of its own kind (a final name may use all 255 bytes) and holds pid, a counter and the
 * clock: processes of two pid namespaces may share a directory and a pid, so a name that is taken is never removed, it may
 * be somebody's file in the making; another name is tried. */
#include "sink.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "format.h"
#include "hash.h"
#include "sys.h"

enum {
  SINK_NAME_MAX = 255, /* of one component, on every Linux file system */
  SINK_NAME_TRIES = 16,
  SINK_WAIT_MS = 10, /* between two tries of a write that said EAGAIN */
  SINK_WAITS_MAX = 100,
};

#ifdef HEAPPROF_TESTING
struct hp_sink_faults hp_sink_faults;

static int open_file(const char *path) {
  if (hp_sink_faults.open_errno != 0) return -hp_sink_faults.open_errno;
  return hp_sys_open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_WRONLY, 0600);
}

static long write_some(int fd, const char *bytes, size_t n) {
  if (hp_sink_faults.write_call != 0 && --hp_sink_faults.write_call == 0) return -hp_sink_faults.write_errno;
  if (hp_sink_faults.write_limit != 0 && n > hp_sink_faults.write_limit) n = hp_sink_faults.write_limit;
  return hp_sys_write(fd, bytes, n);
}

static int close_file(int fd) {
  int status = hp_sys_close(fd);
  return hp_sink_faults.close_errno != 0 ? -hp_sink_faults.close_errno : status;
}

static int rename_file(const char *from, const char *to) {
  return hp_sink_faults.rename_errno != 0 ? -hp_sink_faults.rename_errno : hp_sys_rename(from, to);
}
#else
static int open_file(const char *path) {
  return hp_sys_open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_WRONLY, 0600);
}
static long write_some(int fd, const char *bytes, size_t n) { return hp_sys_write(fd, bytes, n); }
static int close_file(int fd) { return hp_sys_close(fd); }
static int rename_file(const char *from, const char *to) { return hp_sys_rename(from, to); }
#endif

/* Regular files do not say EAGAIN, but file systems in user space may. */
static void wait_a_little(void) {
  struct timespec pause = {.tv_nsec = SINK_WAIT_MS * 1000000L};
  hp_syscall4(SYS_ppoll, NULL, 0, &pause, NULL);
}

/* Does the descriptor still mean our file? A program that becomes a daemon closes every descriptor, and the number may be
 * its own file's by now. */
static bool is_ours(const struct hp_file_sink *sink) {
  struct stat stat;
  return hp_sys_fstat(sink->fd, &stat) == 0 && stat.st_dev == sink->device && stat.st_ino == sink->inode;
}

static int write_all(struct hp_byte_sink *base, const void *bytes, size_t n) {
  struct hp_file_sink *sink = (struct hp_file_sink *)base;
  const char *at = bytes;
  int waits = 0;
  if (!is_ours(sink)) return -EBADF;
  while (n > 0) {
    long written = write_some(sink->fd, at, n);
    if (written == -EINTR) continue;
    if (written == -EAGAIN && waits++ < SINK_WAITS_MAX) {
      wait_a_little();
      continue;
    }
    if (written < 0) return (int)written;
    if (written == 0) return -EIO;
    at += written;
    n -= (size_t)written;
    sink->bytes_written += (uint64_t)written;
  }
  return 0;
}

/* ".heapprof.<pid>.<counter>.<clock>.tmp" into `to` (SINK_TEMPORARY_MAX bytes). */
enum { SINK_TEMPORARY_MAX = 80 };

static void make_temporary_name(char *to) {
  static uint32_t counter; /* atomic */
  struct timespec now = {0};
  hp_syscall2(SYS_clock_gettime, CLOCK_REALTIME, &now);
  uint64_t clock = hp_hash_mix((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
  struct hp_text text;
  hp_text_init(&text, to, SINK_TEMPORARY_MAX);
  hp_text_add(&text, ".heapprof.%d.%u.%x.tmp", hp_sys_getpid(), hp_add_relaxed(&counter, 1), (unsigned)clock);
}

static int start(struct hp_file_sink *sink, int fd) {
  struct stat stat;
  int status = hp_sys_fstat(fd, &stat);
  if (status != 0) {
    close_file(fd);
    hp_sys_unlink(sink->temporary);
    return status;
  }
  sink->fd = fd;
  sink->device = stat.st_dev;
  sink->inode = stat.st_ino;
  return 0;
}

int hp_file_sink_open(struct hp_file_sink *sink, const char *path) {
  sink->base.write = write_all;
  sink->fd = -1;
  sink->bytes_written = 0;
  size_t length = strnlen(path, HP_PATH_MAX);
  if (length == 0) return -ENOENT;
  if (length == HP_PATH_MAX) return -ENAMETOOLONG;
  memcpy(sink->final, path, length + 1);
  size_t directory = length;
  while (directory > 0 && path[directory - 1] != '/') directory--;
  if (directory == length) return -EISDIR;
  if (length - directory > SINK_NAME_MAX || directory + SINK_TEMPORARY_MAX > HP_PATH_MAX) return -ENAMETOOLONG;
  memcpy(sink->temporary, path, directory);
  for (int i = 0; i < SINK_NAME_TRIES; i++) {
    make_temporary_name(sink->temporary + directory);
    int fd = open_file(sink->temporary);
    if (fd == -EEXIST || fd == -EINTR) continue;
    if (fd < 0) return fd;
    return start(sink, fd);
  }
  return -EEXIST;
}

/* Close the descriptor, unless it is no longer ours. */
static int finish(struct hp_file_sink *sink) {
  int status = is_ours(sink) ? close_file(sink->fd) : -EBADF;
  sink->fd = -1;
  return status == -EINTR ? 0 : status; /* EINTR: Linux has closed it all the same */
}

int hp_file_sink_commit(struct hp_file_sink *sink) {
  if (sink->fd < 0) return -EBADF;
  int status = finish(sink); /* may be the first to know that there is no space (network file systems) */
  if (status == 0) status = rename_file(sink->temporary, sink->final);
  if (status != 0) hp_sys_unlink(sink->temporary);
  return status;
}

void hp_file_sink_abort(struct hp_file_sink *sink) {
  if (sink->fd < 0) return;
  finish(sink);
  hp_sys_unlink(sink->temporary);
}

void hp_file_sink_forget(struct hp_file_sink *sink) {
  if (sink->fd >= 0) finish(sink);
}
