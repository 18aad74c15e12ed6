/* SPDX-License-Identifier: MIT
 * process_view.c - see process_view.h. Everything read here may change or go at any moment; what is gone reads as absent.
 */
#include "process_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_memory.h"

/* Environments are bounded by the kernel (a quarter of the stack); maps by the number of mappings, 65530 by default. */
enum { PROC_BYTES_MAX = 64 << 20 };

/* A whole /proc file, NUL-terminated; null and errno if it cannot be read. */
static char *read_proc(const char *path, size_t *length) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  char *text = NULL;
  size_t room = 0, used = 0;
  for (;;) {
    hp_array_reserve(&text, &room, used + 4096 + 1, 1);
    ssize_t count = read(fd, text + used, room - used - 1);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      int failure = errno;
      free(text);
      close(fd);
      errno = failure;
      return NULL;
    }
    used += (size_t)count;
    if (count == 0 || used > PROC_BYTES_MAX) break;
  }
  close(fd);
  text[used] = '\0';
  *length = used;
  return text;
}

static char *read_link(const char *path) {
  char target[4096];
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length < 0) return NULL;
  target[length] = '\0';
  return hp_strdup(target);
}

/* The value of "Name:\t..." in /proc/PID/status, or null. */
static const char *status_field(const char *status, const char *name) {
  size_t length = strlen(name);
  for (const char *line = status; line != NULL; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, name, length) == 0 && line[length] == ':') return line + length + 1 + strspn(line + length + 1, " \t");
  }
  return NULL;
}

static int64_t status_number(const char *status, const char *name) {
  const char *field = status_field(status, name);
  return field != NULL ? strtoll(field, NULL, 10) : 0;
}

static uint64_t status_mask(const char *status, const char *name) {
  const char *field = status_field(status, name);
  return field != NULL ? strtoull(field, NULL, 16) : 0;
}

/* The last number of NSpid: the pid in the innermost namespace. */
static int64_t inner_pid(const char *status, int64_t pid) {
  const char *field = status_field(status, "NSpid");
  while (field != NULL && *field >= '0' && *field <= '9') {
    char *end;
    pid = strtoll(field, &end, 10);
    field = end + strspn(end, " \t");
  }
  return pid;
}

/* One thread of it, by its folder in /proc. The first that lives shows what all share: of a main thread that has left by pthread_exit the
 * environment, the maps and the folders cannot be seen. */
static void see_thread(struct hp_process *process, const char *folder) {
  char *path = hp_format("%s/status", folder);
  size_t length;
  char *status = read_proc(path, &length);
  free(path);
  const char *state = status != NULL ? status_field(status, "State") : NULL;
  if (state != NULL && *state != 'Z') {
    process->blocked &= status_mask(status, "SigBlk");
    if (process->living == NULL) process->living = hp_strdup(folder);
  }
  free(status);
}

static void see_threads(struct hp_process *process) {
  char *own = hp_format("/proc/%" PRId64, process->pid), *tasks = hp_format("%s/task", own);
  if (process->state != 'Z') process->living = hp_strdup(own);
  process->blocked = UINT64_MAX;
  DIR *directory = opendir(tasks);
  for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    char *folder = hp_format("%s/%s", tasks, entry->d_name);
    see_thread(process, folder);
    free(folder);
  }
  if (directory != NULL) closedir(directory);
  free(tasks);
  if (process->living == NULL)
    process->living = own;
  else
    free(own);
}

static void see_library(struct hp_process *process) {
  char *path = hp_format("%s/maps", process->living);
  size_t length;
  char *maps = read_proc(path, &length);
  free(path);
  if (maps == NULL) return;
  process->has_library = strstr(maps, "/libheapprof.so") != NULL;
  if (process->has_library) hp_library_state_read(process->living, maps, &process->state_of_library);
  free(maps);
}

static void see_environment(struct hp_process *process) {
  static const struct {
    const char *name;
    size_t offset;
  } wanted[] = {{"HEAPPROF_SIGNAL=", offsetof(struct hp_process, signal_text)},
                {"HEAPPROF_OUT=", offsetof(struct hp_process, out_text)},
                {"PWD=", offsetof(struct hp_process, start_directory)}};
  char *path = hp_format("%s/environ", process->living);
  size_t length = 0;
  char *text = read_proc(path, &length);
  free(path);
  for (size_t at = 0; text != NULL && at < length; at += strlen(text + at) + 1) {
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
      size_t name = strlen(wanted[i].name);
      char **field = (char **)(void *)((char *)process + wanted[i].offset);
      if (*field == NULL && strncmp(text + at, wanted[i].name, name) == 0 && text[at + name] != '\0')
        *field = hp_strdup(text + at + name);
    }
  }
  free(text);
}

/* "" when the process sees the same files as we do, else its root through /proc. */
static char *see_root(const char *living) {
  char *paths[3] = {hp_format("%s/root", living), hp_format("%s/ns/mnt", living), hp_strdup("/proc/self/ns/mnt")};
  char *links[3];
  for (int i = 0; i < 3; i++) links[i] = read_link(paths[i]);
  bool same = links[0] != NULL && strcmp(links[0], "/") == 0 &&
              (links[1] == NULL || links[2] == NULL || strcmp(links[1], links[2]) == 0);
  char *root = hp_strdup(same ? "" : paths[0]);
  for (int i = 0; i < 3; i++) {
    free(paths[i]);
    free(links[i]);
  }
  return root;
}

static int look_at_status(int64_t pid, struct hp_process *out, struct hp_error *error) {
  char *path = hp_format("/proc/%" PRId64 "/status", pid);
  size_t length;
  char *status = read_proc(path, &length);
  int failure = errno;
  free(path);
  if (status == NULL && (failure == ENOENT || failure == ESRCH))
    return hp_error_set(error, "there is no process %" PRId64, pid);
  if (status == NULL) return hp_error_set(error, "cannot look at process %" PRId64 ": %s", pid, strerror(failure));
  int64_t group = status_number(status, "Tgid");
  if (group != pid && group > 0) { /* a thread's id: what follows is about its process */
    free(status);
    return look_at_status(group, out, error);
  }
  const char *state = status_field(status, "State");
  out->pid = pid;
  out->inner_pid = inner_pid(status, pid);
  out->state = state != NULL ? *state : '?';
  out->threads = status_number(status, "Threads");
  out->caught = status_mask(status, "SigCgt");
  free(status);
  return 0;
}

int hp_process_look(int64_t pid, struct hp_process *out, struct hp_error *error) {
  memset(out, 0, sizeof *out);
  if (look_at_status(pid, out, error) != 0) return -1;
  see_threads(out);
  see_library(out);
  see_environment(out);
  char *path = hp_format("%s/cwd", out->living);
  out->directory = read_link(path);
  free(path);
  out->root = see_root(out->living);
  return 0;
}

void hp_process_free(struct hp_process *process) {
  hp_library_state_free(&process->state_of_library);
  free(process->living);
  free(process->signal_text);
  free(process->out_text);
  free(process->start_directory);
  free(process->directory);
  free(process->root);
}

char hp_process_state(int64_t pid) {
  struct hp_process process = {0};
  return look_at_status(pid, &process, NULL) == 0 ? process.state : 0;
}

bool hp_process_has_ended(int64_t pid) {
  struct hp_process process = {0};
  return look_at_status(pid, &process, NULL) != 0 || (process.state == 'Z' && process.threads <= 1);
}
