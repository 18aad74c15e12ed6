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
#include <sys/stat.h>
#include <unistd.h>

#include "cli_memory.h"

static int fail(const struct hp_output_file *output, int failed_errno, struct hp_error *error) {
  if (output->fd == STDOUT_FILENO) return hp_error_set(error, "cannot write to standard output: %s", strerror(failed_errno));
  return hp_error_set(error, "%s: cannot write: %s", output->path, strerror(failed_errno));
}

static bool is_stdout(const char *path, const struct stat *status) {
  struct stat own;
  if (strcmp(path, "-") == 0) return true;
  return status != NULL && fstat(STDOUT_FILENO, &own) == 0 && own.st_dev == status->st_dev && own.st_ino == status->st_ino;
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
  else if (exists && !S_ISREG(status.st_mode))
    output->fd = open(path, O_WRONLY | O_CLOEXEC);
  else
    output->fd = open_temporary(path, &output->temporary);
  if (output->fd >= 0) return 0;
  int failed_errno = errno;
  free(output->temporary);
  output->temporary = NULL;
  return fail(output, failed_errno, error);
}

int hp_output_file_finish(struct hp_output_file *output, int failed_errno, struct hp_error *error) {
  if (output->fd != STDOUT_FILENO && close(output->fd) != 0 && failed_errno == 0) failed_errno = errno;
  if (output->temporary != NULL) {
    if (failed_errno == 0 && rename(output->temporary, output->path) != 0) failed_errno = errno;
    if (failed_errno != 0) unlink(output->temporary);
    free(output->temporary);
  }
  return failed_errno == 0 ? 0 : fail(output, failed_errno, error);
}
