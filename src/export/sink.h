/* SPDX-License-Identifier: MIT
 * sink.h - a file that appears whole or not at all: a temporary name in the same directory, mode 0600, then rename.
 * Never follows a symbolic link at either name, never appends, leaves nothing behind when it fails.
 * Killed in the middle: where the file system has O_TMPFILE (ext4, xfs, btrfs, tmpfs, overlayfs since Linux 6.1) the file gets
 * its temporary name only when it is whole, and what was killed between that and rename is removed by the next file written
 * in that directory. Elsewhere (NFS, FUSE) an unfinished file of a name of our own kind may stay.
 * What has the final name and is no file stays: a character device (/dev/null) is written to, a pipe, a socket or a link to such
 * is an error.
 * Callers     control/dump. Signals: async-signal-safe; SIGXFSZ and SIGPIPE must be blocked by the caller. */
#ifndef HP_SINK_H
#define HP_SINK_H

#include "pprof.h"

enum { HP_PATH_MAX = 4096 };

struct hp_file_sink {
  struct hp_byte_sink base;    /* first: this is what the encoder gets */
  int fd;                      /* -1: not open */
  char temporary[HP_PATH_MAX]; /* 4 KiB: not for a small stack; lives in the dump's arena or in static memory */
  char final[HP_PATH_MAX];
  uint64_t bytes_written;
  uint64_t device, inode; /* of the file, to know it again */
  size_t directory;       /* length of the part of both names that is the directory */
  bool is_unnamed;        /* has no temporary name yet */
  bool is_device;         /* written to directly: nothing to rename */
};

/* Open the temporary file beside `path`. 0 or a negative errno (-ENAMETOOLONG, -ENOENT, -EACCES, -EISDIR: a path that ends
 * in a slash, -ENXIO: no file, ...); on failure the sink is closed and nothing is left behind. */
int hp_file_sink_open(struct hp_file_sink *sink, const char *path);
/* Close and rename to the final name. 0 or a negative errno, then nothing is left behind. */
int hp_file_sink_commit(struct hp_file_sink *sink);
/* Close and remove the temporary file; nothing to do after commit or a failed open. */
void hp_file_sink_abort(struct hp_file_sink *sink);
/* In a child that was forked while the parent wrote: close the child's descriptor, leave the file to the parent. */
void hp_file_sink_forget(struct hp_file_sink *sink);

#ifdef HEAPPROF_TESTING
/* Faults to inject, each a positive errno, 0: none. */
struct hp_sink_faults {
  int open_errno;
  int link_errno; /* giving a name to a file that has none */
  int write_errno;
  unsigned write_call; /* the k-th write from now on fails (1: the next); 0: none */
  size_t write_limit;  /* a write takes at most so many bytes; 0: no limit */
  int close_errno;
  int rename_errno;
};
extern struct hp_sink_faults hp_sink_faults;
/* A file system that makes no file without a name: what it says. 0: as it is. */
extern int hp_sink_test_unnamed_errno;
void hp_sink_test_forget(void); /* that such a file could not be given a name */
#endif

#endif
