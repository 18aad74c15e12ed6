/* SPDX-License-Identifier: MIT
 * output_file.c - see output_file.h.
 */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_memory.h"

#define OWN_FD "/proc/self/fd/%d"

enum { LINK_TRIES = 100 };

static int fail(const struct hp_output_file *output, int failed_errno, struct hp_error *error) {
  if (output->fd == STDOUT_FILENO) return hp_error_set(error, "cannot write to standard output: %s", strerror(failed_errno));
  return hp_error_set(error, "%s: cannot write: %s", output->path, strerror(failed_errno));
}

static bool is_stdout(const char *path, const struct stat *status) {
  struct stat own;
  if (strcmp(path, "-") == 0) return true;
  return status != NULL && fstat(STDOUT_FILENO, &own) == 0 && own.st_dev == status->st_dev && own.st_ino == status->st_ino;
}

/* /dev/stderr and its kin are the system's, also where what they lead to just now is a regular file. */
static bool is_link_to_descriptor(const char *path) {
  char text[16] = "";
  if (readlink(path, text, sizeof text - 1) < 0) return false;
  return strncmp(text, "/proc/", 6) == 0 || (strncmp(text, "fd/", 3) == 0 && strncmp(path, "/dev/", 5) == 0);
}

/* A file without a name in the folder of `path`: the kernel removes it when the command is interrupted. -1: not here. */
static int open_unnamed(const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash == NULL ? hp_strdup(".") : slash == path ? hp_strdup("/") : strndup(path, (size_t)(slash - path));
  int fd = folder != NULL ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
  free(folder);
  char *own = hp_format(OWN_FD, fd);
  if (fd >= 0 && access(own, F_OK) != 0) { /* no /proc: it could get no name later */
    close(fd);
    fd = -1;
  }
  free(own);
  return fd;
}

/* The file without a name gets one beside `path`. Null: errno says why. */
static char *link_unnamed(int fd, const char *path) {
  char *own = hp_format(OWN_FD, fd), *name = NULL;
  int result = -1;
  for (int i = 0; i < LINK_TRIES && result != 0; i++) {
    uint32_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number) number = (uint32_t)(getpid() + i);
    free(name);
    name = hp_format("%s.%06x", path, number & 0xffffff);
    result = linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    if (result != 0 && errno != EEXIST) break;
  }
  int failed_errno = errno;
  free(own);
  if (result == 0) return name;
  free(name);
  errno = failed_errno;
  return NULL;
}

/* A new file beside `path`, with the mode a plain open would have given it. */
static int open_temporary(const char *path, char **out_name) {
  *out_name = hp_format("%s.XXXXXX", path);
  int fd = mkostemp(*out_name, O_CLOEXEC);
  if (fd < 0) return -1;
  mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
  return fd;
}

int hp_output_file_open(struct hp_output_file *output, const char *path, struct hp_error *error) {
  struct stat status;
  bool exists = stat(path, &status) == 0;
  *output = (struct hp_output_file){.fd = -1, .path = path};
  if (is_stdout(path, exists ? &status : NULL))
    output->fd = STDOUT_FILENO;
  else if (exists && (!S_ISREG(status.st_mode) || is_link_to_descriptor(path)))
    output->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  else if ((output->fd = open_unnamed(path)) >= 0)
    output->is_unnamed = true;
  else
    output->fd = open_temporary(path, &output->temporary);
  if (output->fd >= 0) return 0;
  int failed_errno = errno;
  free(output->temporary);
  output->temporary = NULL;
  return fail(output, failed_errno, error);
}

int hp_output_file_finish(struct hp_output_file *output, int failed_errno, struct hp_error *error) {
  if (output->is_unnamed && failed_errno == 0 && (output->temporary = link_unnamed(output->fd, output->path)) == NULL)
    failed_errno = errno;
  if (output->fd != STDOUT_FILENO && close(output->fd) != 0 && failed_errno == 0) failed_errno = errno;
  if (output->temporary != NULL) {
    if (failed_errno == 0 && rename(output->temporary, output->path) != 0) failed_errno = errno;
    if (failed_errno != 0) unlink(output->temporary);
    free(output->temporary);
  }
  return failed_errno == 0 ? 0 : fail(output, failed_errno, error);
}
