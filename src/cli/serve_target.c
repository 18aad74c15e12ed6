/* SPDX-License-Identifier: MIT
 * serve_target.c - see serve_target.h.
 */
#include "serve_target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_memory.h"
#include "dump_request.h"
#include "library_find.h"
#include "out_template.h"
#include "process_view.h"
#include "profile_reader.h"

int hp_serve_target_prepare(struct hp_serve_target *target, const char *library_given, struct hp_error *error) {
  char *library = hp_library_find(library_given, error);
  if (library == NULL) return -1;
  int result = 0;
  const char *others = getenv("LD_PRELOAD"), *out = getenv("HEAPPROF_OUT"), *temporary = getenv("TMPDIR");
  if (strpbrk(library, " :") != NULL)
    result = hp_error_set(error, "%s cannot be preloaded: the loader takes spaces and colons for separators", library);
  if (result == 0 && (out == NULL || out[0] == '\0')) {
    target->folder = hp_format("%s/heapprof-serve.XXXXXX", temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
    if (mkdtemp(target->folder) == NULL) {
      result = hp_error_set(error, "%s: %s", target->folder, strerror(errno));
      free(target->folder);
      target->folder = NULL;
    } else {
      char *template = hp_format("%s/", target->folder);
      setenv("HEAPPROF_OUT", template, 1);
      setenv("HEAPPROF_PERIOD", "0", 0); /* nobody would read these files */
      setenv("HEAPPROF_EXIT_DUMP", "0", 0);
      free(template);
    }
  }
  if (result == 0) {
    bool has_others = others != NULL && others[0] != '\0';
    char *preload = hp_format("%s%s%s", library, has_others ? ":" : "", has_others ? others : "");
    setenv("LD_PRELOAD", preload, 1);
    free(preload);
  }
  free(library);
  return result;
}

/* The reason why exec failed comes back through a pipe that a successful exec closes. */
int hp_serve_target_start(struct hp_serve_target *target, char **command, const struct hp_serve_signals *found,
                          struct hp_error *error) {
  int report[2], reason = 0;
  if (pipe2(report, O_CLOEXEC) != 0) return hp_error_set(error, "cannot make a pipe: %s", strerror(errno));
  pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, found->on_pipe);
    signal(SIGCHLD, found->on_child);
    sigprocmask(SIG_SETMASK, &found->mask, NULL);
    execvp(command[0], command);
    reason = errno;
    if (write(report[1], &reason, sizeof reason) < 0) _exit(126);
    _exit(127);
  }
  int fork_error = errno;
  close(report[1]);
  if (child > 0 && read(report[0], &reason, sizeof reason) != (ssize_t)sizeof reason) reason = 0;
  close(report[0]);
  if (child < 0) return hp_error_set(error, "cannot start a process: %s", strerror(fork_error));
  if (reason != 0) {
    waitpid(child, NULL, 0);
    return hp_error_set(error, "%s: %s", command[0], strerror(reason));
  }
  target->is_child = true;
  __atomic_store_n(&target->pid, child, __ATOMIC_RELEASE); /* request threads read it */
  return 0;
}

bool hp_serve_target_runs(struct hp_serve_target *target, int *out_status) {
  if (target->is_child) return waitpid((pid_t)target->pid, out_status, WNOHANG) == 0;
  return !hp_process_has_ended(target->pid);
}

/* How much a file says, by its kind, which its name ends in when a dump writes several. 0: nothing that is served. */
static size_t worth_of(const char *path) {
  static const char *const endings[] = {".peak.pb.gz", ".delta.pb.gz", ".alloc.pb.gz", ".heap.pb.gz"};
  size_t count = sizeof endings / sizeof endings[0], length = strlen(path), worth = 0;
  for (; worth < count; worth++) {
    size_t ending = strlen(endings[worth]);
    if (length >= ending && strcmp(path + length - ending, endings[worth]) == 0) break;
  }
  return worth;
}

/* Of the files of one dump the one that says most: all columns, else memory in use, else all that was allocated. */
static int read_best(const struct hp_out_list *files, struct hp_profile **out, struct hp_error *error) {
  const char *best = NULL;
  for (size_t i = 0; i < files->count; i++) {
    size_t worth = worth_of(files->files[i].path);
    if (worth > (best != NULL ? worth_of(best) : 0)) best = files->files[i].path;
  }
  return best != NULL ? hp_profile_read(best, out, error) : hp_error_set(error, "the dump brought no file but of the peak");
}

/* Removes what the request brought about: files of one number. Should a dump for another reason have come at the same moment nobody can
 * tell which is whose, and all stay. */
static void remove_files(const struct hp_out_list *files) {
  for (size_t i = 0; i < files->count; i++)
    if (files->files[i].number < 0 || files->files[i].number != files->files[0].number) return;
  for (size_t i = 0; i < files->count; i++) unlink(files->files[i].path);
}

int hp_serve_target_fetch(void *context, struct hp_profile **out, struct hp_error *error) {
  struct hp_serve_target *target = context;
  int64_t pid = __atomic_load_n(&target->pid, __ATOMIC_ACQUIRE);
  if (pid == 0) return hp_error_set(error, "the command has not been started yet");
  struct hp_out_list files;
  int result = hp_dump_request(pid, target->timeout_seconds, &files, error);
  if (result == 0) {
    result = read_best(&files, out, error);
    if (!target->keep_files) remove_files(&files);
  }
  hp_out_list_free(&files);
  return result;
}

void hp_serve_target_free(struct hp_serve_target *target) {
  if (target->folder == NULL) return;
  DIR *folder = opendir(target->folder);
  struct dirent *entry;
  while (folder != NULL && (entry = readdir(folder)) != NULL)
    if (strncmp(entry->d_name, "heapprof.", 9) == 0) unlinkat(dirfd(folder), entry->d_name, 0);
  if (folder != NULL) closedir(folder);
  rmdir(target->folder);
  free(target->folder);
  target->folder = NULL;
}
