/* SPDX-License-Identifier: MIT
 * dump_request.c - see dump_request.h.
 *
 * Everything that can be wrong is looked for before the signal goes out: sent to a process without a handler for it, it
 * would end that process.
 */
#include "dump_request.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli_memory.h"
#include "process_view.h"
#include "signal_name.h"

enum { POLL_MS = 20, SETTLE_POLLS = 8, MORE_POLLS = 50 };

struct dump {
  struct hp_process process;
  int signal;
  char *templates[2]; /* a relative name is meant from where the process started: its first PWD, or where it is now */
};

/* As the library says, else as it reads its environment. 0: none. */
static int signal_of(const struct hp_process *process) {
  if (process->state_of_library.is_known) return process->state_of_library.signal;
  int number = process->signal_text != NULL ? hp_signal_parse(process->signal_text) : SIGUSR2;
  return number >= 0 ? number : SIGUSR2; /* what the library does with a bad value */
}

/* Why the process cannot be asked, if it cannot. */
static int check(struct dump *dump, struct hp_error *error) {
  struct hp_process *process = &dump->process;
  int64_t pid = process->pid;
  if (process->state == 'Z' && !process->has_library)
    return hp_error_set(error, "process %" PRId64 " has ended (a zombie)", pid);
  if (kill((pid_t)pid, 0) != 0 && errno == EPERM)
    return hp_error_set(error, "process %" PRId64 " belongs to another user: not ours to signal", pid);
  if (!process->has_library)
    return hp_error_set(
        error, "process %" PRId64 " is not profiled: libheapprof.so is not in it (start it with heapprof run)", pid);
  dump->signal = signal_of(process);
  if (dump->signal <= 0 || dump->signal > 64)
    return hp_error_set(error, "process %" PRId64 " takes no dump signal: it was started with HEAPPROF_SIGNAL=none", pid);
  if ((process->caught & (uint64_t)1 << (dump->signal - 1)) == 0)
    return hp_error_set(error,
                        "process %" PRId64
                        " has the library but no handler for signal %d (%s): profiling is off in it, or "
                        "the program took the signal for itself",
                        pid, dump->signal, strsignal(dump->signal));
  if (process->state_of_library.is_signal_lost)
    return hp_error_set(
        error,
        "process %" PRId64
        " has a handler of its own for signal %d (%s), which was not sent: start it with another HEAPPROF_SIGNAL",
        pid, dump->signal, strsignal(dump->signal));
  return 0;
}

static void set_templates(struct dump *dump) {
  const struct hp_process *process = &dump->process;
  const struct hp_library_state *known = &process->state_of_library;
  const char *out = known->out_template != NULL ? known->out_template : process->out_text;
  const char *start = known->directory != NULL ? known->directory : process->start_directory, *now = process->directory;
  if (start != NULL && start[0] == '/') dump->templates[0] = hp_out_template_absolute(out, start);
  if (now != NULL && now[0] == '/') dump->templates[1] = hp_out_template_absolute(out, now);
  if (dump->templates[0] != NULL && dump->templates[1] != NULL && strcmp(dump->templates[0], dump->templates[1]) == 0) {
    free(dump->templates[1]);
    dump->templates[1] = NULL;
  }
}

static void list(const struct dump *dump, struct hp_out_list *out) {
  for (int i = 0; i < 2; i++)
    if (dump->templates[i] != NULL)
      hp_out_template_list(dump->process.root, dump->templates[i], dump->process.inner_pid, out);
}

static size_t count_new(const struct hp_out_list *before, const struct hp_out_list *now) {
  size_t count = 0;
  for (size_t i = 0; i < now->count; i++) count += !hp_out_list_has(before, &now->files[i]);
  return count;
}

/* Why no file came. */
static int fail_waiting(const struct dump *dump, int64_t seconds, struct hp_error *error) {
  int64_t pid = dump->process.pid;
  char state = hp_process_state(pid);
  if (hp_process_has_ended(pid)) return hp_error_set(error, "process %" PRId64 " ended before it wrote a profile", pid);
  if (state == 'T' || state == 't')
    return hp_error_set(error, "process %" PRId64 " is stopped: it writes the profile when it goes on", pid);
  if ((dump->process.blocked & (uint64_t)1 << (dump->signal - 1)) != 0)
    return hp_error_set(error, "process %" PRId64 " blocks signal %d (%s): no profile after %" PRId64 " s", pid,
                        dump->signal, strsignal(dump->signal), seconds);
  return hp_error_set(error,
                      "no profile of process %" PRId64 " at %s%s after %" PRId64
                      " s (its own messages say why, if it "
                      "could not write)",
                      pid, dump->process.root, dump->templates[0] != NULL ? dump->templates[0] : dump->templates[1],
                      seconds);
}

/* Waits until something is new, and then until nothing more comes: one dump may write several files. Not for longer than
 * MORE_POLLS: a process with a short period writes one after another for ever. */
static int wait_for_files(const struct dump *dump, const struct hp_out_list *before, int64_t seconds,
                          struct hp_out_list *out, struct hp_error *error) {
  size_t seen = 0;
  unsigned settled = 0, more = 0;
  for (int64_t polls = 0; settled < SETTLE_POLLS && more < MORE_POLLS; polls++) {
    struct timespec pause = {0, POLL_MS * 1000000L};
    nanosleep(&pause, NULL);
    bool has_ended = hp_process_has_ended(dump->process.pid); /* before the look, which then finds its last */
    hp_out_list_free(out);
    list(dump, out);
    size_t count = count_new(before, out);
    settled = count != 0 && count == seen ? settled + 1 : 0;
    seen = count;
    more += count != 0;
    if (count != 0) continue;
    if (polls * POLL_MS >= seconds * 1000 || has_ended) return fail_waiting(dump, seconds, error);
  }
  return 0;
}

/* Moves what is new in `now` to *files. */
static void keep_new(const struct hp_out_list *before, struct hp_out_list *now, struct hp_out_list *files) {
  for (size_t i = 0; i < now->count; i++) {
    if (hp_out_list_has(before, &now->files[i])) continue;
    hp_array_reserve(&files->files, &files->capacity, files->count + 1, sizeof *files->files);
    files->files[files->count++] = now->files[i];
    now->files[i].path = NULL; /* its owner is *files now */
  }
}

/* Whether the folder of `template` (null: no such template, which counts as missing) is not there. The library makes none, so
 * nothing would ever come. Not judged: a folder with a part to be filled in, and another root, whose links lead elsewhere here. */
static bool lacks_folder(const struct dump *dump, const char *template) {
  if (template == NULL) return true;
  const char *name = strrchr(template, '/');
  if (name == NULL || dump->process.root[0] != '\0') return false;
  char *folder = hp_alloc((size_t)(name - template) + 2), *to = folder;
  bool is_plain = true;
  for (const char *from = template; from <= name && is_plain; from++) {
    if (*from == '%') is_plain = *++from == '%';
    *to++ = *from;
  }
  *to = '\0';
  struct stat status;
  bool is_missing = is_plain && stat(folder, &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
  free(folder);
  return is_missing;
}

/* Adds the new files to *files. */
static int ask(struct dump *dump, int64_t seconds, struct hp_out_list *files, struct hp_error *error) {
  struct hp_out_list before = {0}, now = {0};
  set_templates(dump);
  if (dump->templates[0] == NULL && dump->templates[1] == NULL)
    return hp_error_set(error, "cannot tell where process %" PRId64 " writes its profiles", dump->process.pid);
  if (lacks_folder(dump, dump->templates[0]) && lacks_folder(dump, dump->templates[1]))
    return hp_error_set(error, "the folder where process %" PRId64 " should write its profile does not exist: %s",
                        dump->process.pid, dump->templates[0] != NULL ? dump->templates[0] : dump->templates[1]);
  list(dump, &before);
  int result = 0;
  if (kill((pid_t)dump->process.pid, dump->signal) != 0)
    result = hp_error_set(error, "cannot signal process %" PRId64 ": %s", dump->process.pid, strerror(errno));
  if (result == 0) result = wait_for_files(dump, &before, seconds, &now, error);
  if (result == 0) keep_new(&before, &now, files);
  hp_out_list_free(&before);
  hp_out_list_free(&now);
  return result;
}

int hp_dump_request(int64_t pid, int64_t seconds, struct hp_out_list *files, struct hp_error *error) {
  struct dump dump = {0};
  memset(files, 0, sizeof *files);
  int result = hp_process_look(pid, &dump.process, error);
  if (result == 0) result = check(&dump, error);
  if (result == 0) result = ask(&dump, seconds, files, error);
  free(dump.templates[0]);
  free(dump.templates[1]);
  hp_process_free(&dump.process);
  return result;
}
