/* SPDX-License-Identifier: MIT
 * sink.c - see sink.h.
 * A file without a name (O_TMPFILE) is the kernel's to remove, whatever becomes of us. When it is whole it is linked to
 * SHARED_NAME and renamed. It is locked (flock) all the time, so a file of that name that can be locked belongs to nobody any
 * more: that holds across pid namespaces, where a pid says nothing.
 * The other temporary name, when SHARED_NAME is in use or the file system cannot do that, is short and of its own kind (a
 * final name may use all 255 bytes) and holds pid, a counter and the clock. It is never removed but by whoever made it: it
 * may be somebody's file in the making; if it is taken, another one is tried. */
#include "sink.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "format.h"
#include "hash.h"
#include "sys.h"

enum {
  SINK_NAME_MAX = 255, /* of one component, on every Linux file system */
  SINK_NAME_TRIES = 16,
  SINK_LINK_TRIES = 20,
  SINK_WAIT_MS = 10, /* between two tries of a write that said EAGAIN */
  SINK_WAITS_MAX = 100,
};

static const char SHARED_NAME[] = ".heapprof.tmp";

static int open_by_name(const char *path) {
  return hp_sys_open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_WRONLY, 0600);
}
static int open_unnamed(const char *directory) { return hp_sys_open(directory, O_TMPFILE | O_CLOEXEC | O_RDWR, 0600); }

/* A file without a name gets one. The descriptor's own thread: the helper has a table of its own. */
static int link_fd(int fd, const char *to) {
  char from[48];
  struct hp_text text;
  hp_text_init(&text, from, sizeof from);
  hp_text_add(&text, "/proc/thread-self/fd/%d", fd);
  return (int)hp_syscall6(SYS_linkat, AT_FDCWD, (long)from, AT_FDCWD, (long)to, AT_SYMLINK_FOLLOW, 0);
}

#ifdef HEAPPROF_TESTING
struct hp_sink_faults hp_sink_faults;
int hp_sink_test_unnamed_errno;

static int open_file(const char *path) {
  return hp_sink_faults.open_errno != 0 ? -hp_sink_faults.open_errno : open_by_name(path);
}

static int open_nameless(const char *directory) {
  if (hp_sink_faults.open_errno != 0) return -hp_sink_faults.open_errno;
  return hp_sink_test_unnamed_errno != 0 ? -hp_sink_test_unnamed_errno : open_unnamed(directory);
}

static int link_file(int fd, const char *to) {
  return hp_sink_faults.link_errno != 0 ? -hp_sink_faults.link_errno : link_fd(fd, to);
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
static int open_file(const char *path) { return open_by_name(path); }
static int open_nameless(const char *directory) { return open_unnamed(directory); }
static int link_file(int fd, const char *to) { return link_fd(fd, to); }
static long write_some(int fd, const char *bytes, size_t n) { return hp_sys_write(fd, bytes, n); }
static int close_file(int fd) { return hp_sys_close(fd); }
static int rename_file(const char *from, const char *to) { return hp_sys_rename(from, to); }
#endif

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
    if (written == -EAGAIN && waits++ < SINK_WAITS_MAX) { /* no regular file says so, but file systems in user space may */
      hp_sys_sleep_ms(SINK_WAIT_MS);
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

/* 0600 whatever the program's umask took from it (0777: a file that its owner cannot read). Where it took nothing there is no
 * further call, which a seccomp filter may kill for; a file system without modes may refuse. */
static void restore_mode(int fd, unsigned mode) {
  if ((mode & 07777) != 0600) hp_syscall2(SYS_fchmod, fd, 0600);
}

static int start(struct hp_file_sink *sink, int fd) {
  struct stat stat;
  int status = hp_sys_fstat(fd, &stat);
  if (status != 0) {
    close_file(fd);
    if (!sink->is_unnamed) hp_sys_unlink(sink->temporary);
    return status;
  }
  sink->fd = fd;
  sink->device = stat.st_dev;
  sink->inode = stat.st_ino;
  if (!sink->is_device) restore_mode(fd, stat.st_mode);
  return 0;
}

/* Does the path mean this very file? */
static bool is_name_of(const char *path, uint64_t device, uint64_t inode) {
  struct stat stat;
  return hp_sys_stat_at(path, AT_SYMLINK_NOFOLLOW, &stat) == 0 && stat.st_dev == device && stat.st_ino == inode;
}

static int lock_file(int fd) { return (int)hp_syscall2(SYS_flock, fd, LOCK_EX | LOCK_NB); }

/* Into sink->temporary: the directory and a name in it. */
static void set_temporary(struct hp_file_sink *sink, const char *name) {
  memcpy(sink->temporary, sink->final, sink->directory);
  memcpy(sink->temporary + sink->directory, name, strlen(name) + 1);
}

/* Each with another name of our own, until one is not taken. */
static int try_names(struct hp_file_sink *sink, int (*attempt)(struct hp_file_sink *sink)) {
  for (int i = 0; i < SINK_NAME_TRIES; i++) {
    set_temporary(sink, "");
    make_temporary_name(sink->temporary + sink->directory);
    int status = attempt(sink);
    if (status != -EEXIST && status != -EINTR) return status;
  }
  return -EEXIST;
}

static int open_named(struct hp_file_sink *sink) { return open_file(sink->temporary); }

static bool is_unnamed_useless; /* the kernel made one and then would not link it: no /proc, a seccomp filter */
#ifdef HEAPPROF_TESTING
void hp_sink_test_forget(void) { is_unnamed_useless = false; }
#endif

static int open_temporary(struct hp_file_sink *sink) {
  sink->is_unnamed = false;
  if (!is_unnamed_useless) {
    set_temporary(sink, ".");
    int fd = open_nameless(sink->temporary);
    if (fd >= 0) {
      sink->is_unnamed = true;
      lock_file(fd);
      return fd;
    }
  }
  return try_names(sink, open_named);
}

/* /dev/stdout and its kin, here or in a /dev of somebody's own: they are the system's, though what they lead to just now may be a
 * regular file. */
static bool is_link_to_descriptor(const char *path) {
  static const char proc[] = "/proc/", relative[] = "fd/", folder[] = "/dev/";
  char text[sizeof proc - 1];
  long n = hp_sys_readlink(path, text, sizeof text);
  if (n == (long)sizeof text && memcmp(text, proc, sizeof text) == 0) return true;
  return n >= (long)sizeof relative - 1 && memcmp(text, relative, sizeof relative - 1) == 0 &&
         strncmp(path, folder, sizeof folder - 1) == 0;
}

/* What has the final name now may be given up for ours, if it is a file or a link to one (or to nothing). A device, a pipe or a
 * link to one or to a descriptor (/dev/stdout) is not: a profile must not take the place of /dev/null. 0, 1: a character device,
 * -ENXIO, -EISDIR. */
static int look_at_target(const char *path) {
  struct stat stat;
  if (hp_sys_stat_at(path, AT_SYMLINK_NOFOLLOW, &stat) != 0 || S_ISREG(stat.st_mode)) return 0;
  if (S_ISCHR(stat.st_mode)) return 1;
  if (S_ISDIR(stat.st_mode)) return -EISDIR;
  bool is_link_to_file = S_ISLNK(stat.st_mode) && !is_link_to_descriptor(path) &&
                         (hp_sys_stat_at(path, 0, &stat) != 0 || S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode));
  return is_link_to_file ? 0 : -ENXIO;
}

/* A device is written to as it stands. */
static int open_device(struct hp_file_sink *sink) {
  int fd = hp_sys_open(sink->final, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  struct stat stat;
  if (hp_sys_fstat(fd, &stat) != 0 || !S_ISCHR(stat.st_mode)) {
    hp_sys_close(fd);
    return -ENXIO;
  }
  sink->is_unnamed = sink->is_device = true;
  return start(sink, fd);
}

int hp_file_sink_open(struct hp_file_sink *sink, const char *path) {
  sink->base.write = write_all;
  sink->fd = -1;
  sink->is_device = false;
  sink->bytes_written = 0;
  size_t length = strnlen(path, HP_PATH_MAX);
  if (length == 0) return -ENOENT;
  if (length == HP_PATH_MAX) return -ENAMETOOLONG;
  memcpy(sink->final, path, length + 1);
  size_t directory = length;
  while (directory > 0 && path[directory - 1] != '/') directory--;
  if (directory == length) return -EISDIR;
  if (length - directory > SINK_NAME_MAX || directory + SINK_TEMPORARY_MAX > HP_PATH_MAX) return -ENAMETOOLONG;
  sink->directory = directory;
  int target = look_at_target(path);
  if (target != 0) return target < 0 ? target : open_device(sink);
  int fd = open_temporary(sink);
  return fd < 0 ? fd : start(sink, fd);
}

/* Close the descriptor, unless it is no longer ours. */
static int finish(struct hp_file_sink *sink) {
  int status = is_ours(sink) ? close_file(sink->fd) : -EBADF;
  sink->fd = -1;
  return status == -EINTR ? 0 : status; /* EINTR: Linux has closed it all the same */
}

/* Somebody was killed between link and rename: the file is of our kind and nobody holds its lock. Whoever holds the lock of the
 * file that has the name may take the name away, nobody else; so look what has it when the lock is there. */
static bool remove_stale(const char *path) {
  int fd = hp_sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  struct stat stat;
  bool is_stale = hp_sys_fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == (uid_t)hp_syscall0(SYS_geteuid) &&
                  lock_file(fd) == 0 && is_name_of(path, stat.st_dev, stat.st_ino) && hp_sys_unlink(path) == 0;
  hp_sys_close(fd);
  return is_stale;
}

static int link_named(struct hp_file_sink *sink) { return link_file(sink->fd, sink->temporary); }

/* The shared name is in use for as long as two system calls take; a process stopped just there does not keep us. */
static int link_temporary(struct hp_file_sink *sink) {
  set_temporary(sink, SHARED_NAME);
  int status = link_named(sink);
  for (int i = 0; i < SINK_LINK_TRIES && status == -EEXIST; i++) {
    if (!remove_stale(sink->temporary)) hp_sys_sleep_ms(1);
    status = link_named(sink);
  }
  return status == -EEXIST ? try_names(sink, link_named) : status;
}

/* The bytes into a file with a name, which takes the place of the one that could get none. */
static int copy_to_named(struct hp_file_sink *sink) {
  int from = sink->fd;
  int64_t at = 0, left = (int64_t)sink->bytes_written;
  sink->is_unnamed = false;
  int status = try_names(sink, open_named);
  if (status >= 0) status = start(sink, status);
  if (status < 0) {
    sink->is_unnamed = true; /* nothing has a name, and sink->fd is still the old one */
    return status;
  }
  while (left > 0 && status == 0) {
    long copied = hp_syscall4(SYS_sendfile, sink->fd, from, &at, left);
    if (copied == -EINTR) continue;
    if (copied <= 0) status = copied < 0 ? (int)copied : -EIO;
    left -= copied;
  }
  hp_sys_close(from);
  if (status == 0) is_unnamed_useless = true;
  return status;
}

/* What close would say, with the lock kept: by a second descriptor. Without room for one it stays unsaid. */
static int flush(struct hp_file_sink *sink) {
  if (!is_ours(sink)) return -EBADF;
  int copy = (int)hp_syscall3(SYS_fcntl, sink->fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return 0;
  int status = close_file(sink->fd);
  sink->fd = copy;
  return status == -EINTR ? 0 : status;
}

/* From now on the file has its temporary name, and its last byte. */
static int name_file(struct hp_file_sink *sink) {
  int status = flush(sink);
  if (status != 0) return status;
  if (link_temporary(sink) != 0) {
    status = copy_to_named(sink);
    return status != 0 ? status : finish(sink);
  }
  if (!is_name_of(sink->temporary, sink->device, sink->inode))
    status = -EBADF; /* the number meant another file at that moment */
  sink->is_unnamed = false;
  return status;
}

int hp_file_sink_commit(struct hp_file_sink *sink) {
  if (sink->fd < 0) return -EBADF;
  if (sink->is_device) return finish(sink);
  /* Closing may be the first to know that there is no space (network file systems). */
  int status = sink->is_unnamed ? name_file(sink) : finish(sink);
  if (status == 0) status = rename_file(sink->temporary, sink->final);
  if (status != 0 && !sink->is_unnamed) hp_sys_unlink(sink->temporary);
  if (sink->fd >= 0) finish(sink); /* and with it the lock, after rename */
  return status;
}

void hp_file_sink_abort(struct hp_file_sink *sink) {
  if (sink->fd < 0) return;
  finish(sink);
  if (!sink->is_unnamed) hp_sys_unlink(sink->temporary);
}

void hp_file_sink_forget(struct hp_file_sink *sink) {
  if (sink->fd >= 0) finish(sink);
}
